import Foundation
import FoundationNetworking
package import Nostr
import Platform
package import SyncCore

/// Fetches a relay's NIP-11 document over HTTP.
package final class DocumentFetcher: RelayInformationFetcher {
  private let limits: SocketLimits

  package init(limits: SocketLimits = .init()) { self.limits = limits }

  package func document(of url: RelayURL) async throws(TransportError) -> [UInt8] {
    let response = try await response(of: url)
    guard response.status == 200 else { throw .refused("the answer was HTTP \(response.status)") }
    return response.body
  }

  package func answer(of url: RelayURL) async throws(TransportError) -> RelayAnswer {
    let response = try await response(of: url)
    return RelayAnswer(
      document: response.status == 200 ? response.body : nil, date: response.date)
  }

  private func response(of url: RelayURL) async throws(TransportError) -> Response {
    guard url.isSecure || url.isLoopback else {
      throw .refused("plain http:// reaches only this machine; use wss://\(url.hostAndPort)")
    }
    let text = (url.isSecure ? "https://" : "http://") + url.hostAndPort + "/"
    guard let address = URL(string: text) else { throw .refused("\(text) is not a web address") }
    return try await withDeadline(limits.documentWaitMax) { [limits] in
      await Self.fetch(address, host: url.host, bytesMax: limits.documentBytesMax)
    }
  }

  private static func fetch(_ address: URL, host: String, bytesMax: Int) async
    -> Result<Response, TransportError>
  {
    var request = URLRequest(url: address, cachePolicy: .reloadIgnoringLocalCacheData)
    request.setValue("application/nostr+json", forHTTPHeaderField: "Accept")
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.httpCookieAcceptPolicy = .never
    configuration.urlCredentialStorage = nil
    let download = Download(host: host, bytesMax: bytesMax)
    let session = URLSession(
      configuration: configuration, delegate: download, delegateQueue: nil)
    // The session keeps its delegate and its threads until it is told to let go.
    defer { session.invalidateAndCancel() }
    let task = session.dataTask(with: request)
    return await withTaskCancellationHandler {
      task.resume()
      return await download.answer.value()
    } onCancel: {
      download.answer.give(.failure(.cancelled))
    }
  }
}

/// What the server said, as far as it was read.
private struct Response: Sendable {
  var status = 0
  var date: Timestamp?
  var body: [UInt8] = []

  init() {}

  init(_ response: HTTPURLResponse) {
    status = response.statusCode
    date = response.value(forHTTPHeaderField: "Date").flatMap(HTTPDate.time)
  }
}

/// One answer as it arrives; ends the transfer at the first thing it does not want.
private final class Download: NSObject, URLSessionDataDelegate, Sendable {
  let answer = Answer<Result<Response, TransportError>>()
  private let host: String
  private let bytesMax: Int
  private let received = Lock(Response())

  init(host: String, bytesMax: Int) {
    self.host = host
    self.bytesMax = bytesMax
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    let isSameHost = request.url?.host?.lowercased() == host
    // A redirect from https to http on the same host would send the rest in the clear.
    let isAsSecure = request.url?.scheme == task.originalRequest?.url?.scheme
    if isSameHost, isAsSecure {
      completionHandler(request)
    } else {
      answer.give(.failure(.refused("it redirects to another place")))
      completionHandler(nil)
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    let head = (response as? HTTPURLResponse).map(Response.init) ?? Response()
    guard head.status == 200 else {
      answer.give(.success(head))
      return completionHandler(.cancel)
    }
    guard response.expectedContentLength <= Int64(bytesMax) else {
      answer.give(.failure(tooLarge))
      return completionHandler(.cancel)
    }
    received.withLock { $0 = head }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let isTooLarge = received.withLock { received in
      guard received.body.count + data.count <= bytesMax else { return true }
      received.body.append(contentsOf: data)
      return false
    }
    if isTooLarge {
      answer.give(.failure(tooLarge))
      dataTask.cancel()
    }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    if let error {
      answer.give(.failure(Self.transportError(error, host: host)))
    } else {
      answer.give(.success(received.withLock { $0 }))
    }
  }

  private var tooLarge: TransportError {
    .refused("the document is larger than \(bytesMax) bytes")
  }

  private static func transportError(_ error: any Error, host: String) -> TransportError {
    guard let error = error as? URLError else { return .refused("\(error)") }
    switch error.code {
    case .cannotFindHost, .dnsLookupFailed: return .nameNotFound(host: host)
    case .timedOut: return .timedOut
    case .cancelled: return .cancelled
    case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
      .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid:
      return .tls(error.localizedDescription)
    default: return .refused(error.localizedDescription)
    }
  }
}

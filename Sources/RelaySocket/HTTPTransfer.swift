import Foundation
import FoundationNetworking
import Nostr
import Platform
import SyncCore

/// One HTTP exchange with a relay's own host: no cookie, no credential, a bounded body.
struct HTTPTransfer: Sendable {
  let request: URLRequest
  let host: String
  let bytesMax: Int
  /// To the same host, and as securely; never for a question that is signed for its address.
  let followsRedirects: Bool

  /// A request to the relay's host; plain HTTP reaches only this machine.
  static func request(to url: RelayURL, path: String) throws(TransportError) -> URLRequest {
    guard url.isSecure || url.isLoopback else {
      throw .refused("plain http:// reaches only this machine; use wss://\(url.hostAndPort)")
    }
    let text = RelayQuestion.address(of: url, path: path)
    guard let address = URL(string: text) else { throw .refused("\(text) is not a web address") }
    return URLRequest(url: address, cachePolicy: .reloadIgnoringLocalCacheData)
  }

  func run() async -> Result<HTTPAnswer, TransportError> {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    configuration.httpCookieAcceptPolicy = .never
    configuration.urlCredentialStorage = nil
    let download = Download(self)
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
struct HTTPAnswer: Sendable {
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
  let answer = Answer<Result<HTTPAnswer, TransportError>>()
  private let transfer: HTTPTransfer
  private let received = Lock(HTTPAnswer())

  init(_ transfer: HTTPTransfer) { self.transfer = transfer }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    let isSameHost = request.url?.host?.lowercased() == transfer.host
    // A redirect from https to http on the same host would send the rest in the clear.
    let isAsSecure = request.url?.scheme == task.originalRequest?.url?.scheme
    if transfer.followsRedirects, isSameHost, isAsSecure {
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
    let head = (response as? HTTPURLResponse).map(HTTPAnswer.init) ?? HTTPAnswer()
    guard head.status == 200 else {
      answer.give(.success(head))
      return completionHandler(.cancel)
    }
    guard response.expectedContentLength <= Int64(transfer.bytesMax) else {
      answer.give(.failure(tooLarge))
      return completionHandler(.cancel)
    }
    received.withLock { $0 = head }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let isTooLarge = received.withLock { received in
      guard received.body.count + data.count <= transfer.bytesMax else { return true }
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
      answer.give(.failure(Self.transportError(error, host: transfer.host)))
    } else {
      answer.give(.success(received.withLock { $0 }))
    }
  }

  private var tooLarge: TransportError {
    .refused("the document is larger than \(transfer.bytesMax) bytes")
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

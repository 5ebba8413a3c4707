import Foundation
import FoundationNetworking
package import Nostr
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

  private func response(of url: RelayURL) async throws(TransportError) -> HTTPAnswer {
    var request = try HTTPTransfer.request(to: url, path: "/")
    request.setValue("application/nostr+json", forHTTPHeaderField: "Accept")
    let transfer = HTTPTransfer(
      request: request, host: url.host, bytesMax: limits.documentBytesMax, followsRedirects: true)
    return try await withDeadline(limits.documentWaitMax) { await transfer.run() }
  }
}

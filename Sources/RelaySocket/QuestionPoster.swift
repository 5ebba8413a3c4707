import Foundation
import FoundationNetworking
import Nostr
package import SyncCore

/// Asks a relay's web server by POST.
package final class QuestionPoster: RelayQueries {
  private let limits: SocketLimits

  package init(limits: SocketLimits = .init()) { self.limits = limits }

  package func post(_ question: RelayQuestion) async throws(TransportError) -> RelayReply {
    var request = try HTTPTransfer.request(to: question.relay, path: question.path)
    request.httpMethod = "POST"
    request.httpBody = Data(question.body)
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.setValue("application/json", forHTTPHeaderField: "Accept")
    if let authorization = question.authorization {
      request.setValue(authorization, forHTTPHeaderField: "Authorization")
    }
    let transfer = HTTPTransfer(
      request: request, host: question.relay.host, bytesMax: limits.answerBytesMax,
      followsRedirects: false)
    let answer = try await withDeadline(limits.answerWaitMax) { await transfer.run() }
    return RelayReply(status: answer.status, body: answer.body)
  }
}

import EventLog
import Nostr
import NostrCrypto
import SyncCore

/// What came of asking for one window.
struct FetchedWindow: Sendable {
  var events: [VerifiedEvent] = []
  var rejected: [Reject] = []
  var answer: ChannelWindowMachine.Answer
}

/// Windows of a channel by HTTP.
extension RelayConnection {
  /// The key that signs the relay's windows, where it says that it serves them and was not found to
  /// do otherwise.
  var windowKey: PublicKey? {
    guard let information = machine.information, information.hasChannelWindows else { return nil }
    if windows.isRefused(at: ports.clock.uptime(), limits) { return nil }
    return information.selfKey
  }

  func learnWindows(_ end: ChannelWindowMachine.End, projectsReplies: Bool?) {
    windows.learn(end, projectsReplies: projectsReplies, at: ports.clock.uptime())
  }

  func fetch(_ request: ChannelWindowRequest) async -> FetchedWindow {
    let body = request.body
    let reply: RelayReply
    do throws(TransportError) {
      let question = RelayQuestion(
        relay: url, path: ChannelWindowRequest.path, body: body,
        authorization: await authorization(ChannelWindowRequest.path, body))
      reply = try await ports.queries.post(question)
    } catch .cancelled {
      return FetchedWindow(answer: .cancelled)
    } catch {
      return FetchedWindow(answer: .refused(.failed(Text(error.description))))
    }
    if Task.isCancelled { return FetchedWindow(answer: .cancelled) }
    guard reply.status == 200 else {
      return FetchedWindow(answer: .refused(.status(reply.status)))
    }
    return await read(reply.body)
  }

  /// A word of ours for this one question (NIP-98), given only to a relay that knows us already: a
  /// key must not become known where nobody asked for it.
  private func authorization(_ path: String, _ body: [UInt8]) async -> String? {
    guard let signer, machine.isAuthenticated else { return nil }
    let nonce = [ports.random.next(), ports.random.next()].map { String($0, radix: 16) }.joined()
    let draft = EventDraft(
      createdAt: ports.clock.now(), kind: .httpAuth,
      tags: Tags([
        ["u", Text(RelayQuestion.address(of: url, path: path))], ["method", "POST"],
        ["payload", Text(SHA256.hash(body).hex)], ["nonce", Text(nonce)],
      ]), content: .empty)
    // Without a signature the relay refuses, and pages are asked for.
    guard let event = try? await signer.sign(draft) else { return nil }
    return "Nostr " + String(decoding: Base64.encode(event.event.json()), as: UTF8.self)
  }

  private func read(_ body: [UInt8]) async -> FetchedWindow {
    let scanned: [Result<Event, ScanError>]
    do throws(ScanError) {
      scanned = try EventScanner.list(body, countMax: limits.windowEventsMax)
    } catch {
      return FetchedWindow(answer: .refused(.unreadable))
    }
    var window = FetchedWindow(answer: .cancelled)
    var events: [Event] = []
    for result in scanned {
      switch result {
      case .success(let event): events.append(event)
      case .failure(let error):
        window.rejected.append(error.reject)
      }
    }
    var invalid: [Event] = []
    for (event, verdict) in zip(events, await verifier.verify(events, on: ports.work)) {
      switch verdict {
      case .success(let verified): window.events.append(verified)
      case .failure(let failure):
        invalid.append(event)
        window.rejected.append(Reject(id: Text(event.id.hex), reason: failure.reason))
      }
    }
    window.answer = .events(
      window.events.map(\.event), invalid: invalid, isSound: window.rejected.isEmpty)
    return window
  }
}

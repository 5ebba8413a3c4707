import Nostr
import SyncCore

/// NIP-77, the relay's side: what a client asks to compare is fixed when it asks.
extension RelayMachine {
  mutating func openReconciliation(
    _ subscription: SubscriptionID, _ filter: Filter, _ message: [UInt8], from id: ConnectionID
  ) {
    guard case .served(let itemsMax) = rules.reading.reconciliation else {
      return refuseReconciliation(subscription, to: id)
    }
    if let answer = spend(from: id, on: .request(subscription)) { return send(answer, to: id) }
    guard let index = position(of: id) else { return }
    if let refusal = refusalOfReading([filter], by: connections[index]) {
      return send(.negError(subscription, refusal, recordsMax: nil), to: id)
    }
    let isFull = connections[index].reconciliations.count >= rules.limits.reconciliationsMax
    if isFull && connections[index].reconciliations[subscription] == nil {
      return send(.negError(subscription, "blocked: too many sessions", recordsMax: nil), to: id)
    }
    let keys = connections[index].keys
    do throws(RelayStoreError) {
      let items = try store.positions(filter, itemsMax: itemsMax) { isVisible($0, to: keys) }
      guard let items else {
        let text: Text = "blocked: this query is too big"
        return send(.negError(subscription, text, recordsMax: itemsMax), to: id)
      }
      // Hex doubles a message, and its label and id need room too.
      let bytesMax = max(4096, rules.limits.frameBytesMax / 2 - 512)
      connections[index].reconciliations[subscription.owned()] = NegentropyMachine(
        set: NegentropySet(items), isClient: false, frameBytesMax: bytesMax)
    } catch {
      return send(.negError(subscription, "error: database error", recordsMax: nil), to: id)
    }
    reconcile(subscription, message, from: id)
  }

  mutating func reconcile(
    _ subscription: SubscriptionID, _ message: [UInt8], from id: ConnectionID
  ) {
    guard let index = position(of: id) else { return }
    guard let session = connections[index].reconciliations[subscription] else {
      return send(.negError(subscription, "closed: no such session", recordsMax: nil), to: id)
    }
    do throws(NegentropyError) {
      guard let answer = try session.receive(message).answer else { return }
      send(.negMessage(subscription, answer), to: id)
    } catch {
      connections[index].reconciliations[subscription] = nil
      send(.negError(subscription, Text("invalid: \(error)"), recordsMax: nil), to: id)
    }
  }

  mutating func closeReconciliation(_ subscription: SubscriptionID, from id: ConnectionID) {
    guard let index = position(of: id) else { return }
    connections[index].reconciliations[subscription] = nil
  }

  private mutating func refuseReconciliation(_ subscription: SubscriptionID, to id: ConnectionID) {
    switch rules.reading.reconciliation {
    case .served, .ignored: break
    case .refusedByNotice:
      send(.notice("ERROR: bad msg: unknown cmd: NEG-OPEN"), to: id)
    case .refusedByClosing: close(id, code: 1008)
    case .garbled: send(.negMessage(subscription, Array("not negentropy".utf8)), to: id)
    case .refusedByClosed: send(.closed(subscription, "unsupported: no negentropy"), to: id)
    case .refusedByError:
      send(.negError(subscription, "unsupported: no negentropy", recordsMax: nil), to: id)
    }
  }
}

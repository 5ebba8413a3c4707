import Glibc
import Platform
package import SyncCore

/// Looks host names up, each on a short-lived thread of its own.
///
/// The system's call blocks for as long as it likes and cannot be stopped: on the service thread
/// it would stop every socket, on the cooperative pool every actor.
package final class NameLookup: Sendable {
  private let running = Lock(0)
  /// Lookups that hang keep a thread each, so they are counted.
  private static let runningMax = 16
  private static let addressesMax = 8

  package init() {}

  /// The addresses of `host` in the system's order, as text.
  package func addresses(of host: String) async throws(TransportError) -> [String] {
    if Self.isAddress(host) { return [host] }
    let mayStart = running.withLock { count in
      guard count < Self.runningMax else { return false }
      count += 1
      return true
    }
    guard mayStart else { throw .refused("\(Self.runningMax) name lookups already hang") }
    let answer = Answer<Result<[String], TransportError>>()
    startThread { [running] in
      let found = Self.resolve(host)
      running.withLock { $0 -= 1 }
      answer.give(found.isEmpty ? .failure(.nameNotFound(host: host)) : .success(found))
    }
    let result = await withTaskCancellationHandler {
      await answer.value()
    } onCancel: {
      answer.give(.failure(.cancelled))
    }
    return try result.get()
  }

  /// Whether a text is an address already.
  static func isAddress(_ host: String) -> Bool {
    var four = in_addr()
    var six = in6_addr()
    return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1
  }

  private static func resolve(_ host: String) -> [String] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
    defer { freeaddrinfo(list) }
    var found: [String] = []
    var next = list
    while let entry = next?.pointee, found.count < addressesMax {
      next = entry.ai_next
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      let isNamed =
        getnameinfo(
          entry.ai_addr, entry.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
        == 0
      let address = String(
        decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if isNamed, !found.contains(address) { found.append(address) }
    }
    return found
  }
}

/// One value, given once and awaited once.
final class Answer<Value: Sendable>: Sendable {
  private enum State {
    case empty
    case awaited(CheckedContinuation<Value, Never>)
    case given(Value)
    case taken
  }
  private let state = Lock(State.empty)

  /// The first value given counts; later ones are dropped.
  func give(_ value: Value) {
    let waiting = state.withLock { state -> CheckedContinuation<Value, Never>? in
      switch state {
      case .empty:
        state = .given(value)
        return nil
      case .awaited(let continuation):
        state = .taken
        return continuation
      case .given, .taken: return nil
      }
    }
    waiting?.resume(returning: value)
  }

  func value() async -> Value {
    await withCheckedContinuation { continuation in
      let ready = state.withLock { state -> Value? in
        if case .given(let value) = state {
          state = .taken
          return value
        }
        state = .awaited(continuation)
        return nil
      }
      if let ready { continuation.resume(returning: ready) }
    }
  }
}

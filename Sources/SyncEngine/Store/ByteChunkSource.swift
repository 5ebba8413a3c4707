import Glibc
public import Platform

/// Bytes that come in pieces: a file, a pipe, a simulation.
public protocol ByteChunkSource: Sendable {
  /// The next piece, at most about a megabyte, waiting until there is one; nil at the end.
  ///
  /// - Throws: `ByteSourceError.stopped` where somebody asked for an end before the source had one:
  ///   what was given last may then break off in the middle of a line.
  func next() async throws(ByteSourceError) -> [UInt8]?
}

/// Why no more bytes could be had.
public struct ByteSourceError: Error, Hashable, Sendable, CustomStringConvertible {
  public let description: String

  public init(_ description: String) { self.description = description }

  public static let stopped = ByteSourceError("stopped")
}

/// Reads an open file or pipe on a thread of its own.
public actor DescriptorSource: ByteChunkSource {
  private let descriptor: Int32
  private let executor: any SerialExecutor
  private static let chunkBytes = 512 << 10

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// - Parameter descriptor: Stays the caller's to close, after the last call.
  public init(descriptor: Int32, executor: any SerialExecutor = ThreadExecutor()) {
    self.descriptor = descriptor
    self.executor = executor
  }

  public func next() async throws(ByteSourceError) -> [UInt8]? {
    while true {
      var problem: Int32 = 0
      let chunk = [UInt8](unsafeUninitializedCapacity: Self.chunkBytes) { buffer, count in
        let got = read(descriptor, buffer.baseAddress, buffer.count)
        problem = got < 0 ? errno : 0
        count = max(0, got)
      }
      if problem == 0 { return chunk.isEmpty ? nil : chunk }
      if problem != EINTR { throw ByteSourceError(String(cString: strerror(problem))) }
    }
  }
}

public import EventLog
public import Nostr
public import NostrCrypto
public import Platform
public import SyncCore

/// A line that did not become an event of the log.
public struct RejectedLine: Sendable, Hashable {
  public let number: Int
  /// The word that is counted.
  public let reason: String
  public let detail: Text?
  /// The id it claims, where it could be read.
  public let id: EventID?
  /// The line itself; nil where it was too long to be kept.
  public let bytes: [UInt8]?
}

/// How far a run has come.
public struct IngestProgress: Sendable, Hashable {
  public internal(set) var lines = 0
  public internal(set) var bytes = 0
  public internal(set) var stored = 0
  public internal(set) var duplicates = 0
  public internal(set) var ephemeral = 0
  /// By reason.
  public internal(set) var rejected: [String: Int] = [:]

  public init() {}
}

/// Who is told while a run goes on; `rejected` and `progress` come one after the other, in the order
/// of the lines, after the commit that they speak of.
public struct IngestObserver: Sendable {
  public var rejected: @Sendable (RejectedLine) -> Void
  public var progress: @Sendable (IngestProgress) -> Void
  /// Is given the bytes of lines that are too long to be kept, piece by piece and with the number of
  /// the line, as they are read: before such a line is `rejected`, and beside the other two calls.
  public var overflow: (@Sendable (Int, ArraySlice<UInt8>) -> Void)?

  public init(
    rejected: @escaping @Sendable (RejectedLine) -> Void = { _ in },
    progress: @escaping @Sendable (IngestProgress) -> Void = { _ in },
    overflow: (@Sendable (Int, ArraySlice<UInt8>) -> Void)? = nil
  ) {
    self.rejected = rejected
    self.progress = progress
    self.overflow = overflow
  }
}

/// Why a run ended early. What was committed before stays.
public enum IngestError: Error, Hashable, Sendable, CustomStringConvertible {
  case source(ByteSourceError)
  case log(LogError)
  case cancelled

  public var description: String {
    switch self {
    case .source(let error): "the input cannot be read: \(error)"
    case .log(let error): error.description
    case .cancelled: "stopped"
    }
  }
}

/// The bounds of a run.
public struct IngestLimits: Sendable {
  /// The weight at which a block of lines is handed on, also while the next stage is busy.
  public var blockWeight = 2 << 20
  /// The most weight of lines that waits between two stages.
  public var queuedWeightMax = 4 << 20
  /// Longer pieces of the input are cut into lines step by step, so that a block of many short
  /// lines does not outgrow its weight by what one piece holds.
  public var stepBytes = 64 << 10
  public var lineBytesMax = 16 << 20
  /// The most events of one transaction, beside those of its first block.
  public var batchEvents = 4000
  /// How far the cache may fall behind before ingest waits for it: what it has not folded yet is
  /// then still in memory, and need not be read back.
  public var cacheLag: Int64 = 12_000

  public init() {}
}

/// Brings lines of JSON into a community: read, cut, scanned, verified on all cores, stored and
/// folded, all stages at once.
///
/// What is stored, in which order and under which sequence depends on the lines alone, except where
/// transactions begin and end.
public struct IngestPipeline: Sendable {
  private let store: CommunityStore
  private let verifier: Verifier
  private let work: any ParallelWork
  private let clock: any SyncClock
  private let limits: IngestLimits

  public init(
    store: CommunityStore, verifier: Verifier = Verifier(), work: any ParallelWork,
    clock: any SyncClock, limits: IngestLimits = IngestLimits()
  ) {
    self.store = store
    self.verifier = verifier
    self.work = work
    self.clock = clock
    self.limits = limits
  }

  /// Takes in everything that `source` gives. When it returns, all of it is on the disk and the
  /// views show it.
  public func run(
    _ source: any ByteChunkSource, observer: IngestObserver = IngestObserver()
  ) async throws(IngestError) -> IngestProgress {
    let stages = Stages(limits: limits)
    let result = await withTaskCancellationHandler {
      await withTaskGroup(of: StageResult.self) { group in
        group.addTask { await read(source, into: stages.blocks, observer) }
        group.addTask { await verify(stages.blocks, into: stages.checked) }
        group.addTask { await storeAll(stages.checked, observer) }
        return await collect(&group, stages)
      }
    } onCancel: {
      stages.abandon()
    }
    let progress = try result.get()
    if Task.isCancelled { throw .cancelled }
    await store.caughtUp()
    // The pipeline's promise: what was taken in can also be found by its words.
    if let head = try? store.reader.head() { await store.searchable(to: head) }
    do throws(LogError) {
      if let damage = await store.logDamage() { throw damage }
      try await store.log.checkpoint()
    } catch {
      throw .log(error)
    }
    return progress
  }

  private typealias StageResult = Result<IngestProgress?, IngestError>

  /// The first failure ends the other stages; without one, what the last stage counted.
  private func collect(
    _ group: inout TaskGroup<StageResult>, _ stages: Stages
  ) async -> Result<IngestProgress, IngestError> {
    var progress = IngestProgress()
    var failure: IngestError?
    for await result in group {
      switch result {
      case .success(let counted?): progress = counted
      case .success(nil): break
      case .failure(let error):
        failure = failure ?? error
        stages.abandon()
      }
    }
    if let failure { return .failure(failure) }
    return .success(progress)
  }

  // MARK: Stages

  /// What lies between the stages.
  private struct Stages: Sendable {
    let blocks: Handoff<LineBlock>
    let checked: Handoff<CheckedBlock>

    init(limits: IngestLimits) {
      blocks = Handoff(weightMax: limits.queuedWeightMax)
      checked = Handoff(weightMax: limits.queuedWeightMax)
    }

    func abandon() {
      blocks.abandon()
      checked.abandon()
    }
  }

  private func read(
    _ source: any ByteChunkSource, into blocks: Handoff<LineBlock>, _ observer: IngestObserver
  ) async -> StageResult {
    var cutter = LineCutter(lineBytesMax: limits.lineBytesMax)
    cutter.overflow = observer.overflow
    do throws(ByteSourceError) {
      while let chunk = try await source.next() {
        var rest = chunk[...]
        while !rest.isEmpty {
          cutter.append(rest.prefix(limits.stepBytes))
          rest = rest.dropFirst(limits.stepBytes)
          // A slow stream is handed on as it comes; a fast one in pieces worth a transaction.
          let isDue =
            cutter.heldWeight >= limits.blockWeight || rest.isEmpty && blocks.isEmpty
          guard cutter.hasLines && isDue else { continue }
          guard await send(cutter.take(), into: blocks) else { return .success(nil) }
        }
      }
    } catch {
      return .failure(error == .stopped ? .cancelled : .source(error))
    }
    cutter.finish()
    if cutter.hasLines { _ = await send(cutter.take(), into: blocks) }
    blocks.finish()
    return .success(nil)
  }

  private func send(_ block: LineBlock, into blocks: Handoff<LineBlock>) async -> Bool {
    await blocks.send(block, weight: block.weight)
  }

  private func verify(
    _ blocks: Handoff<LineBlock>, into checked: Handoff<CheckedBlock>
  ) async -> StageResult {
    while let block = await blocks.receive() {
      let ranges = block.lines.compactMap(\.range)
      let verdicts = await verifier.scanAndVerify(block.bytes, lines: ranges, on: work)
      let result = CheckedBlock(block, verdicts: verdicts)
      guard await checked.send(result, weight: result.weight) else { return .success(nil) }
    }
    checked.finish()
    return .success(nil)
  }

  private func storeAll(
    _ checked: Handoff<CheckedBlock>, _ observer: IngestObserver
  ) async -> StageResult {
    var progress = IngestProgress()
    do throws(LogError) {
      while var block = await checked.receive() {
        // Small blocks that have piled up share a transaction.
        while block.events.count < limits.batchEvents, block.weight < limits.queuedWeightMax,
          !checked.isEmpty,
          let more = await checked.receive()
        {
          block.append(more)
        }
        let result = try await store.ingest(
          IngestBatch(
            events: block.events,
            rejected: block.rejected.map {
              Reject(
                id: $0.id.map { Text($0.hex) }, reason: $0.reason, detail: $0.detail,
                line: $0.number)
            },
            receivedAt: clock.now()))
        progress.add(block, result)
        for line in block.rejected { observer.rejected(line) }
        observer.progress(progress)
        let due = LogSequence(result.head.number - limits.cacheLag)
        await store.caughtUp(to: due)
        await store.searchable(to: due)
        if let damage = await store.logDamage() { throw damage }
      }
      return .success(progress)
    } catch {
      return .failure(.log(error))
    }
  }
}

/// A block of lines with its verdicts, in the order of the lines.
struct CheckedBlock: Sendable {
  private(set) var events: [VerifiedEvent] = []
  private(set) var rejected: [RejectedLine] = []
  private(set) var lines: Int
  private(set) var bytes: Int
  private(set) var weight: Int

  init(_ block: LineBlock, verdicts: [Result<VerifiedEvent, LineReject>]) {
    lines = block.lines.count
    bytes = block.bytes.count
    weight = block.weight
    events.reserveCapacity(verdicts.count)
    var next = verdicts.startIndex
    for line in block.lines {
      guard let range = line.range else {
        rejected.append(
          RejectedLine(
            number: line.number, reason: "size", detail: Text(LineCutter.tooLong), id: nil,
            bytes: nil))
        continue
      }
      switch verdicts[next] {
      case .success(let event): events.append(event)
      case .failure(let reject):
        rejected.append(Self.rejection(reject, line.number, block.bytes[range]))
      }
      next += 1
    }
  }

  mutating func append(_ other: CheckedBlock) {
    events.append(contentsOf: other.events)
    rejected.append(contentsOf: other.rejected)
    lines += other.lines
    bytes += other.bytes
    weight += other.weight
  }

  private static func rejection(
    _ reject: LineReject, _ number: Int, _ line: ArraySlice<UInt8>
  ) -> RejectedLine {
    // What could be scanned once can be scanned again, to tell what it claims to be.
    let id: EventID? = if case .verify = reject { try? EventScanner.event(line).id } else { nil }
    return RejectedLine(
      number: number, reason: reject.reason, detail: Text(reject.detail), id: id,
      bytes: Array(line))
  }
}

extension IngestProgress {
  mutating func add(_ block: CheckedBlock, _ result: IngestResult) {
    lines += block.lines
    bytes += block.bytes
    stored += result.appended
    duplicates += result.duplicates
    ephemeral += result.ephemeral.count
    for line in block.rejected { rejected[line.reason, default: 0] += 1 }
  }
}

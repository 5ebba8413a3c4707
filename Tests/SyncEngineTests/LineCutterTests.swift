@testable import SyncEngine
import Testing

@Suite struct LineCutterTests {
  /// The lines as text, nil for one that was too long, whatever the pieces they came in.
  private func cut(_ text: String, piece: Int, max: Int = 20, takesOften: Bool = true)
    -> [[UInt8]?]
  {
    var cutter = LineCutter(lineBytesMax: max)
    var result: [[UInt8]?] = []
    var numbers: [Int] = []
    func take() {
      let block = cutter.take()
      result += block.lines.map { line in line.range.map { Array(block.bytes[$0]) } }
      numbers += block.lines.map(\.number)
    }
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: piece) {
      cutter.append(bytes[start..<min(start + piece, bytes.count)])
      if takesOften { take() }
    }
    cutter.finish()
    take()
    #expect(numbers == Array(1..<result.count + 1))
    #expect(!cutter.hasLines && cutter.heldBytes == 0)
    return result
  }

  @Test(arguments: [1, 2, 3, 7, 1000], [true, false])
  func `lines are the same in whatever pieces they come`(piece: Int, takesOften: Bool) {
    let long = String(repeating: "x", count: 21)
    let text = "one\n\ntwo\r\n  \t\r\n\(long)\nthree\n\(long)\(long)\n12345678901234567890\r\nlast"
    let lines = cut(text, piece: piece, takesOften: takesOften)
    let expected: [String?] = ["one", "two", nil, "three", nil, "12345678901234567890", "last"]
    #expect(lines == expected.map { $0.map { Array($0.utf8) } })
  }

  @Test(arguments: ["", "\n", "\n\n \r\n"])
  func `blank lines are no lines`(text: String) {
    #expect(cut(text, piece: 1) == [])
  }

  @Test func `blank lines alone are not held, and a line between them keeps its bytes`() {
    var cutter = LineCutter()
    for _ in 0..<100 { cutter.append(Array(repeating: 0x0a, count: 500)[...]) }
    cutter.append(Array("\n \nhalf".utf8)[...])
    #expect(cutter.heldBytes == 4)
    cutter.append(Array(" a line\n\n".utf8)[...])
    let block = cutter.take()
    #expect(block.lines.map(\.range) == [0..<11])
    #expect(Array(block.bytes.prefix(11)) == Array("half a line".utf8))
  }

  @Test func `a line that is too long is not held`() {
    var cutter = LineCutter(lineBytesMax: 1000)
    for _ in 0..<100 { cutter.append(Array(repeating: 0x78, count: 500)[...]) }
    #expect(cutter.heldBytes <= 1500)
    cutter.finish()
    #expect(cutter.take().lines.map(\.range) == [nil])
  }
}

@Suite struct HandoffTests {
  @Test func `elements arrive in order, and the sender waits for room`() async {
    let handoff = Handoff<Int>(weightMax: 3)
    let received = await withTaskGroup(of: [Int].self) { group in
      group.addTask {
        for number in 0..<500 { #expect(await handoff.send(number, weight: 1 + number % 5)) }
        handoff.finish()
        return []
      }
      group.addTask {
        var result: [Int] = []
        while let number = await handoff.receive() { result.append(number) }
        return result
      }
      return await group.reduce([]) { $0 + $1 }
    }
    #expect(received == Array(0..<500))
  }

  @Test func `abandoning lets go a sender that waits`() async {
    let handoff = Handoff<Int>(weightMax: 1)
    #expect(await handoff.send(1, weight: 1))
    await withTaskGroup(of: Void.self) { group in
      group.addTask { #expect(await handoff.send(2, weight: 1) == false) }
      group.addTask { handoff.abandon() }
    }
    #expect(await handoff.receive() == nil)
  }

  @Test func `abandoning lets go a receiver that waits`() async {
    let handoff = Handoff<Int>(weightMax: 1)
    await withTaskGroup(of: Void.self) { group in
      group.addTask { #expect(await handoff.receive() == nil) }
      group.addTask { handoff.abandon() }
    }
    #expect(await handoff.send(1, weight: 1) == false)
  }
}

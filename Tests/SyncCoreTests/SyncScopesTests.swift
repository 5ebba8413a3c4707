import Nostr
import SyncCore
import Testing

/// The shapes of what is asked for: some relays serve nothing else, and none serves them worse.
@Suite struct SyncScopesTests {
  private let h = UInt8(ascii: "h")

  // A relay that tells channels apart delivers live only to a REQ that names one of them.
  @Test func `a channel's feed is one filter that names that channel alone and has no since`()
    throws
  {
    let (name, filters) = SyncScopes.liveGroup("general", limit: 20)
    let filter = try #require(filters.first)
    #expect(filters.count == 1 && filter.tags == [h: ["general"]])
    #expect(filter.since == nil && filter.until == nil && filter.limit == 20)
    #expect(SyncScopes.group(ofFeed: name) == "general")
  }

  @Test func `what stands in no channel is asked for in requests that name none`() throws {
    let me = PublicKey(Bytes32([UInt8](repeating: 1, count: 32)) ?? .zero)
    let feeds = SyncScopes.liveGlobals(me: me, limit: 20)
    for (name, filters) in feeds {
      #expect(filters.count == 1 && filters.allSatisfy { $0.tags[h] == nil && $0.since == nil })
      #expect(SyncScopes.group(ofFeed: name) == nil)
    }
    let channel = Set(SyncScopes.liveGroup("general", limit: 20).1.flatMap { $0.kinds ?? [] })
    // Profiles and notices of membership go to requests without a channel only.
    let global = Set(feeds.flatMap { $0.1.flatMap { $0.kinds ?? [] } })
    #expect(global.isSuperset(of: [.profile, .memberAdded, .memberRemoved]))
    #expect(channel.isDisjoint(with: [.profile, .memberAdded, .memberRemoved]))
  }

  // Notices that are shown to their addressee only would close the request for all.
  @Test func `a gated kind is asked for with one's own key, and in a request of its own`() {
    let me = PublicKey(Bytes32([UInt8](repeating: 1, count: 32)) ?? .zero)
    for (_, filters) in SyncScopes.liveGlobals(me: me, limit: 20) {
      for filter in filters where filter.kinds?.contains(.memberAdded) == true {
        #expect(filter.tags == [UInt8(ascii: "p"): [Text(me.hex)]])
        #expect(Set(filter.kinds ?? []) == [.memberAdded, .memberRemoved])
      }
    }
    let stranger = SyncScopes.liveGlobals(me: nil, limit: 20).flatMap { $0.1 }
    #expect(!stranger.contains { $0.kinds?.contains(.memberAdded) == true })
  }

  // A page of 500 that may hold reactions holds few messages.
  @Test func `a page of messages holds nothing else, and what changes them is paged apart`() {
    let classes = SyncScopes.groupClasses("general").map(\.filter)
    #expect(classes.allSatisfy { $0.tags == [h: ["general"]] && $0.kinds?.isEmpty == false })
    let kinds = classes.map { Set($0.kinds ?? []) }
    for (place, one) in kinds.enumerated() {
      for other in kinds[(place + 1)...] { #expect(one.isDisjoint(with: other)) }
    }
    let messages = kinds.filter { $0.contains(.message) }
    #expect(messages.count == 1)
    #expect(
      messages.allSatisfy { $0.isDisjoint(with: [.reaction, .deletion, .edit, .zapReceipt]) })
    #expect(kinds.contains { $0.isSuperset(of: [.reaction, .deletion, .edit]) })
  }
}

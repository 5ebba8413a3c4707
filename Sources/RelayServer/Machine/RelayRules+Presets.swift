import Nostr

extension RelayRules {
  /// An ordinary NIP-29 relay that serves authenticated users only.
  package static var membersOnly: RelayRules {
    var rules = RelayRules()
    rules.authentication.isNeededToRead = true
    return rules
  }

  /// An ordinary relay without groups: anyone reads, anyone writes.
  package static var withoutGroups: RelayRules {
    var rules = RelayRules()
    rules.authentication.challenges = false
    rules.authentication.isNeededToWrite = false
    rules.groups.areManaged = false
    rules.writing.refusesRelaySignedKinds = false
    return rules
  }

  /// The local copy of a community, served and never written to.
  ///
  /// - Parameter asksForAuthentication: Readers must authenticate, and private groups are shown to
  ///   their members only. Without it whoever reaches the port reads everything.
  package static func replica(asksForAuthentication: Bool) -> RelayRules {
    var rules = RelayRules()
    rules.authentication.challenges = asksForAuthentication
    rules.authentication.isNeededToRead = asksForAuthentication
    rules.authentication.isNeededToWrite = false
    rules.reading.reconciliation = .served(itemsMax: 1_000_000)
    rules.writing.isReplica = true
    rules.groups.scopesReading = asksForAuthentication
    rules.groups.announcesRoles = false
    return rules
  }

  /// A strict relay in plain words: every rule on that keeps people and kinds apart.
  package static var strict: RelayRules {
    var rules = RelayRules.membersOnly
    rules.reading.kindsGatedByRecipient = [1059, 44100, 44101]
    rules.reading.withholdsGroupState = true
    rules.writing.refusesForeignAuthors = true
    rules.groups.kindsNeedingGroup.insert(7)
    rules.groups.announcesMembership = true
    rules.groups.opensConversations = true
    return rules
  }

  /// What is known of Buzz relays.
  package static var buzz: RelayRules {
    var rules = RelayRules()
    rules.authentication.isNeededToRead = true
    rules.authentication.ageMax = 60
    rules.authentication.isOncePerSocket = true
    rules.authentication.deadline = .seconds(5)
    rules.reading.kindsGatedByRecipient = [24200, 44100, 44101, 1059, 30622, 44200]
    rules.reading.kindsGatedByAuthor = [30300, 30350, 30179]
    rules.reading.pageMax = 1000
    rules.reading.fanOut = .singleChannel
    rules.reading.closedIDsAreDead = true
    rules.reading.servesKeysetCursor = true
    rules.reading.refusesUnknownKeys = false
    rules.reading.windows = .served(rowsMax: 200, projectsReplies: false)
    rules.writing.refusesForeignAuthors = true
    rules.writing.ageMax = 900
    rules.writing.leadMax = 900
    rules.writing.needsOneDeletionTarget = true
    rules.writing.checksParent = true
    rules.writing.refusesRepeatedReactions = true
    rules.groups.announcesMembership = true
    rules.groups.announcesRoles = false
    rules.groups.marksEveryGroupClosed = true
    rules.groups.listsRolesOfMembers = true
    rules.groups.opensConversations = true
    rules.groups.recognisesRepeatedCommands = true
    rules.groups.resolvesScopeByTarget = true
    rules.groups.acceptsRepeatedJoins = true
    rules.limits.frameBytesMax = 524_288
    rules.limits.subscriptionsMax = 1024
    rules.limits.filtersMax = 10
    rules.limits.advertisedPageMax = 10_000
    rules.limits.budget = RateBudget(framesMax: 50, window: .seconds(5))
    rules.answers.hints = false
    rules.answers.toBadRequest = .notice
    rules.answers.wording = .buzz
    return rules
  }
}

import Nostr

// NIP-42. The exchange runs beside the state: a relay may challenge at any moment.
//
// Whatever waits for AUTH waits for `auth.deadline`: no path leaves one waiting without it.
extension ConnectionMachine {
  mutating func challenged(_ challenge: Text, _ now: Duration) {
    auth.challenge = challenge
    guard canSign else {
      // What needs no key may still be served.
      if case .authenticating = state { becomeReady(now) }
      return
    }
    if auth.signing == nil { sign(now) }
  }

  /// When the newest challenge may be answered that came too soon after others; nil: there is none.
  var postponedUntil: Duration? { auth.isPostponed ? auth.allowance.nextAt : nil }

  private mutating func sign(_ now: Duration) {
    guard let challenge = auth.challenge else { return }
    auth.isPostponed = !auth.allowance.allows(at: now)
    if auth.isPostponed { return }
    auth.allowance.spend(at: now)
    auth.signing = challenge
    auth.isDone = false
    auth.deadline = now + limits.signMax
    if case .authenticating = state {
      enter(.authenticating(deadline: now + limits.signMax + limits.authAnswerGrace))
    }
    effects.append(.sign(challenge: challenge, as: shape))
  }

  mutating func signed(_ event: Event, _ challenge: Text, _ now: Duration) {
    guard auth.signing == challenge else { return }
    auth.signing = nil
    // A newer challenge came while the signer worked: this signature is worth nothing now.
    if auth.challenge != challenge { return sign(now) }
    _ = budget.take(.auth, at: now)
    auth.sent = event.id
    auth.answered = challenge
    auth.deadline = now + limits.authAnswerGrace
    if case .authenticating = state {
      enter(.authenticating(deadline: now + limits.authAnswerGrace))
    }
    effects.append(.send(ClientMessage.auth(event).json()))
  }

  mutating func signingFailed(_ why: Text, _ challenge: Text, _ now: Duration) {
    guard auth.signing == challenge else { return }
    auth.signing = nil
    auth.deadline = nil
    lastError = why
    refuseAwaiting { said in
      said.map { Text("\(why.string) (the relay said: \($0.string))") } ?? why
    }
    becomeReady(now)
  }

  /// The relay's OK for our AUTH event.
  mutating func authAnswered(
    _ isAccepted: Bool, _ text: Text, _ now: Duration, _ random: any RandomSource
  ) {
    if isAccepted || text.string.lowercased().contains("already authenticated") {
      authRefusals = 0
      return authenticated(now)
    }
    auth.deadline = nil
    authRefusals += 1
    switch RefusalClass(text) {
    case .restricted where !RefusalClass.isAboutTime(text) && !RefusalClass.isAboutAddress(text):
      refuse(text)
    case .blocked: refuse(text)
    default:
      if authRefusals >= limits.authRefusalsMax { return refuse(text) }
      // After a refusal the socket may be unusable, and the cause may pass: a clock, an address
      // spelled in another way, a database. Many relays do not say which it was.
      let words = reshape(text)
      effects.append(.measureClock)
      fail(words, now, random, atLeast: clockSkew == nil ? limits.clockPatience : .zero)
    }
  }

  /// Chooses what to do otherwise next time.
  ///
  /// - Returns: What to tell the user.
  private mutating func reshape(_ text: Text) -> Text {
    if let skew = clockSkew, abs(skew) > limits.authSkewMax, shape.correction != skew {
      shape.correction = skew
      let side = skew > 0 ? "behind" : "ahead of"
      return Text("\(text.string) (this machine's clock is \(abs(skew)) s \(side) the relay's)")
    }
    if !RefusalClass.isAboutTime(text) { shape = shape.withOtherAddress }
    return text
  }

  /// The relay's clock was read: by how many seconds it is ahead of ours.
  mutating func learnClock(_ skew: Int64) {
    clockSkew = skew
    // A correction that is in use follows the clocks.
    if shape.correction != 0 { shape.correction = abs(skew) > limits.authSkewMax ? skew : 0 }
  }

  private mutating func authenticated(_ now: Duration) {
    auth.isDone = true
    // The signature for a newer challenge may still be in the making, and is waited for.
    if auth.signing == nil { auth.deadline = nil }
    becomeReady(now)
    releaseAwaiting()
  }

  mutating func tickAuth(_ now: Duration) {
    if let postponedUntil, now >= postponedUntil { sign(now) }
    guard let deadline = auth.deadline, now >= deadline else { return }
    auth.deadline = nil
    if let challenge = auth.signing {
      return signingFailed("the signer did not answer in time", challenge, now)
    }
    if auth.sent != nil {
      // Some relays never answer an AUTH; whether they took it shows at the next request.
      return authenticated(now)
    }
    let note =
      auth.challenge == nil
      ? "it asked for AUTH and sent no challenge" : "it challenges without end"
    refuseAwaiting { said in
      // The relay's own words come first, as what they begin with says what kind of refusal it is.
      Text("\((said ?? "auth-required:").string) (\(note))")
    }
  }

  enum AuthWait { case wait, again, refused }

  /// What to do with a request that the relay refused with `auth-required`.
  mutating func needsAuth(hasRetried: Bool, _ now: Duration) -> AuthWait {
    if hasRetried || !canSign { return .refused }
    if auth.signing != nil { return .wait }
    guard let challenge = auth.challenge else {
      // Its challenge may come right behind.
      auth.deadline = auth.deadline ?? now + limits.challengeGrace
      return .wait
    }
    if auth.answered != challenge {
      guard auth.allowance.allows(at: now) else { return .refused }
      sign(now)
      return .wait
    }
    // Asked before the AUTH was through: once more, and then it is the relay's last word.
    return auth.isDone ? .again : .wait
  }

  private mutating func releaseAwaiting() {
    for name in liveOrder where lives[name]?.phase == .awaitingAuth { lives[name]?.phase = .idle }
    for id in askOrder where asks[id]?.phase == .awaitingAuth { asks[id]?.phase = .queued }
    for id in publishOrder { publishes[id]?.isAwaitingAuth = false }
    releaseNegotiations()
  }

  /// Ends what waits for AUTH.
  ///
  /// - Parameter words: Makes of what the relay said when it refused what people are told.
  private mutating func refuseAwaiting(_ words: (Text?) -> Text) {
    refuseAwaitingNegotiations(words)
    for name in liveOrder where lives[name]?.phase == .awaitingAuth {
      refuseLive(name, words(lives[name]?.refusal))
    }
    for id in askOrder where asks[id]?.phase == .awaitingAuth {
      finish(id, .refused(words(asks[id]?.refusal)))
    }
    for id in publishOrder where publishes[id]?.isAwaitingAuth == true {
      let why = words(publishes[id]?.refusal)
      removePublish(id)
      effects.append(.verdict(id, accepted: false, why))
    }
  }
}

import Platform
public import SyncCore

extension Ports {
  /// The ports of a program: sockets, system clock and randomness, threads.
  ///
  /// - Parameter certificateAuthorityFile: PEM of the authorities to trust instead of the
  ///   system's, for a relay with a private one.
  public static func system(
    limits: SocketLimits = .init(), certificateAuthorityFile: String? = nil
  ) -> Ports {
    let service = SocketService(
      limits: limits, certificateAuthorityFile: certificateAuthorityFile)
    return Ports(
      clock: SystemClock.fromEnvironment(), random: SystemRandom(), tasks: SystemTasks(),
      transport: SocketTransport(service: service),
      relayInformation: DocumentFetcher(limits: limits),
      queries: QuestionPoster(limits: limits), work: WorkPool())
  }
}

import Glibc

/// Descriptors 0, 1 and 2, which a caller may have closed (`2>&-`).
///
/// The next file opened gets the lowest free number. A store opened as 2 would have the talk
/// written into it, and a pipe of our own opened as 0 would be read for ever as the input.
enum StandardStreams {
  /// Occupies those that are closed with what cannot be used either: reading 0 and writing 1
  /// still fail, and are reported as for any bad descriptor.
  static func occupy() {
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(descriptor, F_GETFD) == -1 {
      _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}

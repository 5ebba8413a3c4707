/// The numbered migrations of the log, embedded in code.
public enum Migrations {}

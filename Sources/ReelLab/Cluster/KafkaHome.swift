import Glibc

/// An Apache Kafka on this machine: a folder with its `libs/*.jar`, and the Java that runs them.
public struct KafkaHome: Sendable {
    /// The folder, as in Apache's tarball.
    public let path: String
    /// The path of the `java` program.
    public let java: String

    /// The oldest Java that Kafka 4 runs on.
    static let javaVersionMin = 17

    /// Checks that everything needed exists: the jars in `path`, and Java in `JAVA_HOME` or on `PATH`.
    public init(_ path: String) throws(ChildProcess.Failure) {
        self.path = path
        let jars = Files.names(in: path + "/libs").filter { $0.hasSuffix(".jar") }
        guard jars.contains(where: { $0.hasPrefix("kafka_") }), jars.contains(where: { $0.hasPrefix("kafka-clients") })
        else {
            throw ChildProcess.Failure(
                description: "no Kafka in `\(path)`: expected is a folder with libs/kafka_….jar,"
                    + " as in the archive from kafka.apache.org"
            )
        }
        guard let java = Self.findJava() else {
            throw ChildProcess.Failure(
                description: "Kafka needs Java \(Self.javaVersionMin) or newer, and there is none in JAVA_HOME or on"
                    + " PATH; run: apt-get install openjdk-17-jre-headless"
            )
        }
        self.java = java
        let version = try Self.version(of: java)
        guard version >= Self.javaVersionMin else {
            throw ChildProcess.Failure(
                description: "Kafka needs Java \(Self.javaVersionMin) or newer; \(java) is \(version)"
            )
        }
    }

    /// Returns the Kafka that `KAFKA_HOME` names; nil if the variable is not set.
    public static func named() throws(ChildProcess.Failure) -> KafkaHome? {
        guard let path = variable("KAFKA_HOME") else { return nil }
        return try KafkaHome(path)
    }

    /// Runs one of Kafka's own tools to its end, and returns the text that it printed.
    ///
    /// - Parameters:
    ///   - mainClass: the name of the tool's Java class.
    ///   - arguments: the arguments of the tool.
    ///   - timeoutMs: the time in milliseconds after which the tool is killed.
    /// - Throws: An error with the printed text if the tool failed or was killed.
    @discardableResult
    public func run(
        _ mainClass: String,
        _ arguments: [String],
        timeoutMs: Int = 120_000
    ) throws(ChildProcess.Failure) -> String {
        // A tool runs for a second, so only the quick compiler is worth its time.
        let options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
        return try ChildProcess.output(
            of: java,
            options + ["-cp", classPath, mainClass] + arguments,
            timeoutMs: timeoutMs
        )
    }

    /// The argument of Java's `-cp`.
    var classPath: String { path + "/libs/*" }

    // MARK: Java

    private static func findJava() -> String? {
        var folders = (variable("PATH") ?? "").split(separator: ":").map(String.init)
        if let home = variable("JAVA_HOME") { folders.insert(home + "/bin", at: 0) }
        return folders.map { $0 + "/java" }.first { access($0, X_OK) == 0 }
    }

    /// Returns the major version: 17 for `openjdk version "17.0.15" 2025-04-15`, 8 for `1.8.0`.
    private static func version(of java: String) throws(ChildProcess.Failure) -> Int {
        let said = try ChildProcess.output(of: java, ["-version"])
        let numbers = said.split(separator: "\"").dropFirst().first?.split { !$0.isNumber } ?? []
        let parts = numbers.compactMap { Int($0) }
        guard let first = parts.first else {
            throw ChildProcess.Failure(description: "\(java) does not say its version: \(said)")
        }
        return first == 1 ? parts.dropFirst().first ?? first : first
    }

    private static func variable(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}

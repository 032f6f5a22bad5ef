import Foundation
import Testing

@testable import ReelNet

/// A certificate authority for one test, made by the `openssl` command. Its folder is removed with it.
final class Certificates: Sendable {
    let folder: URL

    /// Creates the authority. Returns nil, and prints a line, if there is no `openssl` command.
    init?() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("reel-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        guard (try? Self.run("openssl version", in: folder)) != nil else {
            print("NOT TESTED: found no openssl command: apt-get install openssl")
            return nil
        }
        try Self.run("openssl req -x509 \(Self.key) -keyout ca.key -out ca.pem -subj '/CN=Test Authority'", in: folder)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    private static let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

    /// The file with the authority's certificate.
    var authority: String { path("ca.pem") }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// Creates `NAME.pem` and `NAME.key`: a certificate for these hosts, signed by the authority.
    func make(_ name: String, for hosts: String = "DNS:localhost,IP:127.0.0.1", days: Int = 2) throws {
        try "subjectAltName=\(hosts)\n".write(toFile: path("\(name).cnf"), atomically: true, encoding: .utf8)
        try Self.run(
            "openssl req -new \(Self.key) -keyout \(name).key -out \(name).csr -subj '/CN=\(name)'",
            in: folder
        )
        try Self.run(
            "openssl x509 -req -in \(name).csr -CA ca.pem -CAkey ca.key -CAcreateserial -days \(days)"
                + " -extfile \(name).cnf -out \(name).pem",
            in: folder
        )
    }

    /// Returns the TLS identity of a server, and creates its certificate if there is none.
    func server(_ name: String = "server") throws -> TLSServer {
        if !FileManager.default.fileExists(atPath: path("\(name).pem")) { try make(name) }
        return try TLSServer(certificateFile: path("\(name).pem"), keyFile: path("\(name).key"))
    }

    /// Returns a client that trusts the authority.
    func client() throws -> TLSClient { try TLSClient(authorities: authority) }

    /// Runs a shell command and returns its standard output and standard error. If the
    /// command fails, both are in the error.
    @discardableResult
    static func run(_ command: String, in folder: URL) throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(output: output) }
        return output
    }

    /// Runs a shell command in the folder of the certificates, and returns its output whatever its exit code is.
    func shell(_ command: String) throws -> String {
        try command.write(toFile: path("command"), atomically: true, encoding: .utf8)
        return try Self.run("timeout 600 sh ./command || true", in: folder)
    }

    struct Failed: Error {
        let output: String
    }
}

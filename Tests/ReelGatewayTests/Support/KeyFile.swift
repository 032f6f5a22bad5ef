import Foundation
import ReelBase
import ReelCore
import ReelNet
import ReelNode
import Testing

/// A file with one key, and the source of tokens with that key's signature.
final class KeyFile {
    let gate: TokenGate
    private var key: TokenKey

    init() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("reel-keys-\(UUID().uuidString)")
            .path
        key = try Self.fresh()
        try TokenKeys([key]).text(withSecrets: false).write(toFile: file, atomically: true, encoding: .utf8)
        gate = try TokenGate(file: file)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: gate.file)
    }

    private static func fresh() throws -> TokenKey {
        TokenKey(id: UUID().uuidString, key: try #require(SignatureKey.random(.edDSA)))
    }

    func change() throws {
        key = try Self.fresh()
        try TokenKeys([key]).text(withSecrets: false).write(toFile: gate.file, atomically: true, encoding: .utf8)
    }

    func token(
        _ subject: String = "ann",
        read: String = "*",
        publish: String,
        inspect: String? = nil,
        admin: String? = nil,
        expiresIn seconds: Int64 = 3_600
    ) throws -> String {
        let now = WallClock.nowMs() / 1_000
        let grant = TokenGrant(
            subject: subject,
            expiresAt: now + seconds,
            read: [try #require(StreamPattern(read))],
            publish: [try #require(StreamPattern(publish))],
            inspect: try inspect.map { [try #require(StreamPattern($0))] } ?? [],
            admin: try admin.map { [try #require(StreamPattern($0))] } ?? []
        )
        return try #require(TokenMint(key).token(grant, now: now))
    }
}

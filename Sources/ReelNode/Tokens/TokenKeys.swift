import ReelCore
public import ReelNet

/// One key of a key file.
public struct TokenKey: Sendable {
    /// The name by which tokens refer to the key (`kid`).
    public let id: String?
    /// The key itself.
    public let key: SignatureKey

    /// A key of this name.
    public init(id: String?, key: SignatureKey) {
        self.id = id
        self.key = key
    }
}

/// The keys that verify tokens, as a JWK Set (RFC 7517). Identity providers publish this format, so their file can be
/// used unchanged. Each key has its own algorithm, and several keys may coexist while one replaces another.
public struct TokenKeys: Sendable {
    /// The keys, in the order of the file.
    public let keys: [TokenKey]
    /// The number of keys of the file that are not used here, such as RSA keys and keys for encryption.
    public private(set) var unused = 0

    /// The maximum size of the file in bytes.
    static let largestFile = 1 << 20

    /// A set of these keys.
    public init(_ keys: [TokenKey]) {
        self.keys = keys
    }

    /// Reads a JWK Set. The error contains no part of a key.
    ///
    /// - Throws: If the file is not a JWK Set, or a key of a supported kind is not valid. Also if an HMAC key is
    ///   shorter than 32 bytes, an id occurs twice, or no usable key remains.
    public init(parsing file: [UInt8]) throws(TokenRefusal) {
        guard file.count <= Self.largestFile else { throw TokenRefusal("the key file has more than 1 MiB") }
        var keys: [TokenKey] = []
        var unused = 0
        var found: [Members]?
        do throws(ReelError) {
            found = try file.withUnsafeBufferPointer { (bytes) throws(ReelError) in try Self.read(Bytes(bytes)) }
        } catch {
            throw TokenRefusal("the key file is no JSON of a JWK Set")
        }
        guard let found else { throw TokenRefusal("the key file has no member \"keys\", expected is a JWK Set") }
        for (index, members) in found.enumerated() {
            if let key = try Self.key(members, at: index) { keys.append(key) } else { unused += 1 }
        }
        guard !keys.isEmpty else {
            throw TokenRefusal("the key file has no key that can be used: expected are Ed25519, P-256 or HMAC keys")
        }
        let ids = keys.compactMap(\.id).map { Array($0.utf8) }
        guard Set(ids).count == ids.count else { throw TokenRefusal("the key file has two keys of the same kid") }
        self.keys = keys
        self.unused = unused
    }

    /// True if a key has both a public and a secret half.
    var hasNeedlessSecrets: Bool {
        keys.contains { key in
            switch key.key.material {
            case .ed25519(_, let secret): secret != nil
            case .p256(_, _, let secret): secret != nil
            case .hmac: false
            }
        }
    }

    /// Returns the key that a token refers to. Without an id it returns the only key. Nil if no key has the id, or if
    /// there is no id and several keys.
    func key(_ id: String?) -> TokenKey? {
        guard let id else { return keys.count == 1 ? keys[0] : nil }
        return keys.first { $0.id.map { $0.utf8.elementsEqual(id.utf8) } ?? false }
    }

    // MARK: Reading

    private typealias Members = [String: String]

    /// Returns the text members of each key; nil: there is no list of keys.
    private static func read(_ bytes: Bytes) throws(ReelError) -> [Members]? {
        var all: [Members]?
        var reader = JSONReader(bytes, levels: 8, shape: .badJSON)
        try reader.object { (reader, name) throws(ReelError) in
            guard name.string == "keys" else { return try reader.skip() }
            var keys: [Members] = []
            try reader.array { (reader) throws(ReelError) in
                var members: Members = [:]
                try reader.object { (reader, name) throws(ReelError) in
                    guard try reader.kind() == .string else { return try reader.skip() }
                    members[name.string] = try reader.string()
                }
                keys.append(members)
            }
            all = keys
        }
        try reader.end()
        return all
    }

    private static func key(_ members: Members, at index: Int) throws(TokenRefusal) -> TokenKey? {
        if let use = members["use"], use != "sig" { return nil }
        let place = "key \(index + 1) of the key file"
        func bytes(_ name: String) throws(TokenRefusal) -> [UInt8]? {
            guard let text = members[name] else { return nil }
            guard let bytes = Base64URL.decode(text.utf8) else {
                throw TokenRefusal("\(place): its \"\(name)\" is no base64url without padding")
            }
            return bytes
        }
        let material: SignatureKey.Material
        switch (members["kty"], members["crv"]) {
        case ("OKP", "Ed25519"):
            material = .ed25519(publicKey: try bytes("x") ?? [], secret: try bytes("d"))
        case ("EC", "P-256"):
            material = .p256(x: try bytes("x") ?? [], y: try bytes("y") ?? [], secret: try bytes("d"))
        case ("oct", _):
            if let algorithm = members["alg"], algorithm != "HS256" { return nil }
            let secret = try bytes("k") ?? []
            guard secret.count >= 32 else {
                throw TokenRefusal("\(place): an HMAC key of \(secret.count) bytes, expected are at least 32")
            }
            material = .hmac(secret: secret)
        default: return nil
        }
        guard let key = SignatureKey(material) else {
            throw TokenRefusal("\(place): its numbers are no key of its kind")
        }
        if let algorithm = members["alg"], algorithm != key.algorithm.rawValue {
            throw TokenRefusal("\(place): its \"alg\" is not the \(key.algorithm.rawValue) of its kind")
        }
        return TokenKey(id: members["kid"], key: key)
    }

    // MARK: Writing

    /// Returns the JWK Set as JSON, one key per line. `withSecrets` is false for verifiers, which need no secret
    /// halves.
    public func text(withSecrets: Bool) -> String {
        let lines = keys.compactMap { Self.line($0, withSecrets: withSecrets) }
        return "{\"keys\":[\n" + lines.joined(separator: ",\n") + "\n]}\n"
    }

    /// Returns nil for an HMAC key without its secret: nothing of it remains.
    private static func line(_ key: TokenKey, withSecrets: Bool) -> String? {
        var writer = JSONObjectWriter()
        writer.member("kty", kty(key.key.material))
        writer.member("alg", key.key.algorithm.rawValue)
        writer.member("use", "sig")
        writer.member("kid", key.id)
        switch key.key.material {
        case .ed25519(let publicKey, let secret):
            writer.member("crv", "Ed25519")
            writer.member("x", Base64URL.encode(publicKey))
            if withSecrets { writer.member("d", secret.map(Base64URL.encode)) }
        case .p256(let x, let y, let secret):
            writer.member("crv", "P-256")
            writer.member("x", Base64URL.encode(x))
            writer.member("y", Base64URL.encode(y))
            if withSecrets { writer.member("d", secret.map(Base64URL.encode)) }
        case .hmac(let secret):
            guard withSecrets else { return nil }
            writer.member("k", Base64URL.encode(secret))
        }
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    private static func kty(_ material: SignatureKey.Material) -> String {
        switch material {
        case .ed25519: "OKP"
        case .p256: "EC"
        case .hmac: "oct"
        }
    }
}

import Glibc
internal import ReelBase
public import ReelCore
public import ReelNet
import Synchronization

/// Checks the tokens of clients for all loops of a node, with the keys of one file. The file can be read again while
/// the node serves. A connection that a token has opened stays until that token expires.
public final class TokenGate: Sendable {
    /// The path of the file with the keys, a JWK Set.
    public let file: String
    private let verifier: Mutex<TokenVerifier>
    private let verified: Mutex<VerifiedTokens>
    private let wrong = WrongSignatures()
    /// The number of tokens that were refused, by reason.
    public let refused = RefusedTokens()

    /// Reads the file.
    ///
    /// - Parameters:
    ///   - file: The path of a JWK Set.
    ///   - issuer: The issuer that tokens must have (`iss`); nil: any.
    ///   - audience: The audience that tokens must have (`aud`); nil: any.
    /// - Throws: An error with the file's name if the file cannot be read or used.
    public init(file: String, issuer: String? = nil, audience: String? = nil) throws(TokenRefusal) {
        self.file = file
        var verifier = TokenVerifier(try Self.read(file))
        verifier.issuer = issuer
        verifier.audience = audience
        self.verifier = Mutex(verifier)
        verified = Mutex(VerifiedTokens())
    }

    /// True if the file has the secret half of a key pair. The node could then make tokens, which it never needs to do.
    /// A secret without a public half (HS256) does not count.
    public var hasNeedlessSecrets: Bool { verifier.withLock { $0.keys.hasNeedlessSecrets } }

    /// Logs a warning if the file has a secret half.
    public func warnOfSecrets(_ logger: Logger) {
        guard hasNeedlessSecrets else { return }
        logger.warning(
            "the key file has a secret half",
            [
                "file": file,
                "detail": "a node needs only public halves: anyone with access to this file or to the node can make"
                    + " tokens. Make a file by `reel token keygen --public FILE`, and name that with --jwks",
            ]
        )
    }

    /// Reads the file again. Throws as `init` does, and then keeps the previous keys.
    public func reload() throws(TokenRefusal) {
        let keys = try Self.read(file)
        verifier.withLock { $0.keys = keys }
        verified.withLock { $0.forget() }
    }

    /// Returns the rights that a token gives now. `origin` is the client's `SocketAddress.origin`. Throws
    /// `unauthorized` with the reason, or `rate_limited` if this origin has sent too many tokens with a wrong
    /// signature. From any thread.
    public func grant(_ token: String, from origin: UInt64) throws(ReelError) -> TokenGrant {
        let now = WallClock.nowMs() / 1_000
        let (known, generation) = verified.withLock { ($0.grant(token, now: now), $0.generation) }
        if let known { return known }
        let verifier = verifier.withLock { $0 }
        let claim: TokenVerifier.Claim
        do throws(TokenRefusal) {
            claim = try verifier.claim(Array(token.utf8), now: now)
        } catch {
            refused.add(error.reason)
            throw ReelError(.unauthorized, error.description)
        }
        try wrong.take(origin)
        do throws(TokenRefusal) {
            let grant = try claim.verified()
            wrong.giveBack(origin)
            // Do not cache it if the keys were read again meanwhile: this token's key may be gone.
            verified.withLock { if $0.generation == generation { $0.keep(token, grant) } }
            return grant
        } catch {
            refused.add(error.reason)
            throw ReelError(.unauthorized, error.description)
        }
    }

    /// The number of tokens that were refused unverified because of the wrong signatures of their origin.
    var limited: Int { wrong.limited }

    /// Removes the origins that have sent no wrong signature recently.
    func tick() { wrong.tick() }

    private static func read(_ file: String) throws(TokenRefusal) -> TokenKeys {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(file) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= TokenKeys.largestFile {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { break }
            guard count > 0 else { throw unreadable(file) }
            bytes += chunk[..<count]
        }
        do throws(TokenRefusal) {
            return try TokenKeys(parsing: bytes)
        } catch {
            throw TokenRefusal("\(file): \(error.description)")
        }
    }

    private static func unreadable(_ file: String) -> TokenRefusal {
        TokenRefusal(
            "the key file \(file) cannot be read: \(String(cString: strerror(errno))); expected is a JWK Set, such as"
                + " `reel token keygen --public KEYS` prints: make one, or correct --jwks"
        )
    }
}

/// The rights of a client on this node: those of its token, or all rights if the node has no keys.
public struct Access: Sendable {
    /// The rights that the token gives; nil: all rights.
    public let grant: TokenGrant?
    private let token: KeptToken?

    /// The rights of a grant.
    ///
    /// - Parameters:
    ///   - grant: The rights that the token gives; nil: all rights.
    ///   - token: The token; nil: there is none.
    ///   - gate: The gate that checked the token; nil: there is none.
    public init(_ grant: TokenGrant?, token: String? = nil, of gate: TokenGate? = nil) {
        self.grant = grant
        self.token = token.map { KeptToken($0, gate) }
    }

    /// The `Authorization` header for requests to other nodes on behalf of the client; nil: the node has no keys.
    public var authorization: String? { token.map { "Bearer \($0.text)" } }

    /// Reads the rights from the `Authorization: Bearer …` header. Without a gate it gives all rights and reads no
    /// header. Throws 401 if the token is missing or not valid.
    public init(_ gate: TokenGate?, _ head: HTTPRequestHead) throws(Problem) {
        guard let gate else {
            self.init(nil)
            return
        }
        let fields = head.headers.all("authorization")
        guard !fields.isEmpty else {
            gate.refused.add(.missing)
            throw Problem(.unauthorized, "found no token, expected Authorization: Bearer …")
        }
        guard fields.count == 1, let token = Self.bearer(fields[0]) else {
            gate.refused.add(.malformed)
            throw Problem(.unauthorized, "found another Authorization, expected Bearer and a token, once")
        }
        do throws(ReelError) {
            let origin = head.client?.origin ?? Payer.unknownOrigin
            self.init(try gate.grant(token, from: origin), token: token, of: gate)
        } catch {
            throw Problem(error)
        }
    }

    private static func bearer(_ field: String) -> String? {
        let parts = field.split(separator: " ", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0].lowercased() == "bearer" ? String(parts[1]) : nil
    }

    /// The subject of the token, which becomes `by` in published events; nil: the node has no keys.
    public var subject: String? { grant?.subject }

    /// Returns the reason why the client may not read the stream; nil: it may.
    public func refusalToRead(_ stream: StreamName) -> ReelError? {
        guard let grant, !grant.mayRead(stream) else { return nil }
        countRefusal()
        return ReelError(.forbidden, "the token does not give the stream \(stream) to read")
    }

    /// Returns the reason why the client may not publish to the stream; nil: it may.
    public func refusalToPublish(_ stream: StreamName) -> ReelError? {
        guard let grant, !grant.mayPublish(stream) else { return nil }
        countRefusal()
        return ReelError(.forbidden, "the token does not give the stream \(stream) to publish to")
    }

    /// Returns true if the client may publish to the stream. Counts no refusal.
    public func mayPublish(_ stream: StreamName) -> Bool { grant?.mayPublish(stream) ?? true }

    /// Returns true if the client may list the sites of the stream.
    public func mayInspect(_ stream: StreamName) -> Bool { grant?.mayInspect(stream) ?? true }

    /// Throws 403 unless the client may list the sites of the stream.
    public func requireInspect(_ stream: StreamName) throws(Problem) {
        guard !mayInspect(stream) else { return }
        countRefusal()
        throw problem(
            ReelError(
                .forbidden,
                "the token does not give the right `inspect` for the stream \(stream), which listing its sites needs"
            )
        )
    }

    /// Throws 403 unless the client may list the sites of at least one stream.
    public func requireInspect() throws(Problem) {
        guard grant?.inspect.isEmpty ?? false else { return }
        countRefusal()
        throw problem(ReelError(.forbidden, "the token does not give the right `inspect`, which listing sites needs"))
    }

    /// True if the token gives the right `admin` for `*`, or the node has no keys.
    public var isAdmin: Bool { grant?.isAdmin ?? true }

    /// Throws 403 unless the token gives the right `admin` for `*`. For requests that concern no single stream.
    public func requireAdmin() throws(Problem) {
        guard !isAdmin else { return }
        countRefusal()
        throw problem(ReelError(.forbidden, "the token does not give the right `admin` for `*`, which this path needs"))
    }

    /// Counts a refusal because of a missing right, and returns the problem for the client.
    func refusal(_ detail: String) -> Problem {
        countRefusal()
        return problem(ReelError(.forbidden, detail))
    }

    private func problem(_ refusal: ReelError) -> Problem {
        var problem = Problem(refusal)
        problem.subject = subject
        return problem
    }

    private func countRefusal() { token?.gate?.refused.add(.forbidden) }

    /// Throws 403 unless the client may read the stream.
    public func requireRead(_ stream: StreamName) throws(Problem) {
        if let refusal = refusalToRead(stream) { throw problem(refusal) }
    }

    /// Throws 403 unless the client may publish to the stream.
    public func requirePublish(_ stream: StreamName) throws(Problem) {
        if let refusal = refusalToPublish(stream) { throw problem(refusal) }
    }

    /// Returns true if the token has expired at `nowMs`, in milliseconds since 1970.
    public func hasExpired(nowMs: Int64) -> Bool {
        grant.map { nowMs / 1_000 >= $0.expiresAt } ?? false
    }
}

/// A token with its gate. A separate object, since most nodes have no keys and a nil reference is small.
private final class KeptToken: Sendable {
    let text: String
    let gate: TokenGate?

    init(_ text: String, _ gate: TokenGate?) {
        self.text = text
        self.gate = gate
    }
}

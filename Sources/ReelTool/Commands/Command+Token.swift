import ReelBase
import ReelCore
import ReelNet
import ReelNode

extension Command {
    /// `reel token keygen`: creates a key.
    static let tokenKeys = Command(
        "token keygen",
        "create a key for tokens",
        about: """
            Prints a JWK Set with one new key, including its secret half: store it where only the issuer of tokens can
            read it. Nodes need only the public half, which --public prints from a file. A file can have several keys,
            so that a new key can be added before an old one is removed. HS256 keys have no public half, and --public
            omits them: a node with such a key can also issue tokens.
            """,
        settings: [algorithm, keyID, publicHalf],
        examples: [
            Example("umask 077; reel token keygen > keys.json", "a new Ed25519 key"),
            Example("reel token keygen --public keys.json > public.json", "the file for --jwks of nodes"),
        ]
    ) { options, console in
        if let file = options[publicHalf] {
            guard options[algorithm] == nil, options[keyID] == nil else {
                throw CommandError(.usage, "--public creates no key; expected is neither --alg nor --kid with it")
            }
            let keys = try keys(file)
            guard keys.keys.contains(where: { $0.key.algorithm != .hs256 }) else {
                throw CommandError(.badData, "an HS256 key has no public half; nodes need `\(file)` itself")
            }
            let left = keys.keys.filter { $0.key.algorithm == .hs256 }
            if !left.isEmpty {
                let names = left.map { $0.id.map { "`\($0)`" } ?? "one without kid" }.joined(separator: ", ")
                console.note(
                    "reel: warning: HS256 keys have no public half and are omitted: \(names); a node that accepts"
                        + " their tokens needs `\(file)` itself"
                )
            }
            try console.write(keys.text(withSecrets: false).utf8)
            return .done
        }
        let name = options[algorithm] ?? SignatureKey.Algorithm.edDSA.rawValue
        guard let kind = SignatureKey.Algorithm(rawValue: name) else {
            throw CommandError(.usage, "--alg is `\(name)`; expected is EdDSA, ES256 or HS256")
        }
        guard let key = SignatureKey.random(kind) else { throw CommandError(.failed, "the system gives no randomness") }
        let id = options[keyID] ?? Hex64.text(.random(in: .min ... .max))
        try console.write(TokenKeys([TokenKey(id: id, key: key)]).text(withSecrets: true).utf8)
        return .done
    }

    /// `reel token issue`: creates a token.
    static let tokenMake = Command(
        "token issue",
        "create a token that gives rights to streams",
        about: """
            Prints a token, signed with the first key of the file. A pattern is the name of a stream, or the beginning
            of names with * at its end. Every holder of the token has its rights until it expires. No right includes
            another. --inspect gives the list of a stream's sites. --admin '*' gives the paths for operators: metrics,
            cluster and the details of health. Nodes of an older build refuse tokens with --inspect or --admin: update
            the nodes first.
            """,
        settings: [
            ServingArguments.keys.saying("sign with a key of this file, a JWK Set from `reel token keygen`"),
            keyID.saying("sign with the key of this name; default: the first key"), subject, read, publishing,
            inspecting, administering, lifetime,
            ServingArguments.issuer.saying("write this `iss` into the token: its issuer"),
            ServingArguments.audience.saying("write this `aud` into the token: its audience"),
        ],
        required: [ServingArguments.keys, subject],
        examples: [
            Example(
                "reel token issue --jwks keys.json --sub ann --read 'todo-*' --publish todo-7 --for 3600",
                "an hour for ann"
            ),
            Example(
                "reel token issue --jwks keys.json --sub operator --read '*' --inspect '*' --admin '*'",
                "an hour for an operator: `reel site list`, `reel cluster` and `reel doctor`"
            ),
        ]
    ) { options, console in
        let file = try options.required(ServingArguments.keys)
        let subject = try options.required(subject)
        let all = try keys(file).keys
        let wanted = options[keyID]
        guard let key = all.first(where: { wanted == nil || $0.id == wanted }) else {
            let names = all.map { $0.id.map { "`\($0)`" } ?? "one without a kid" }.joined(separator: ", ")
            throw CommandError(
                .usage,
                "found no key with the kid `\(wanted ?? "")` in `\(file)`, expected one of \(names): correct --kid, or"
                    + " leave it out to sign with the first key"
            )
        }
        let now = WallClock.nowMs() / 1_000
        var mint = TokenMint(key)
        mint.issuer = options[ServingArguments.issuer]
        mint.audience = options[ServingArguments.audience]
        if [read, publishing, inspecting, administering].allSatisfy({ options[$0].isEmpty }) {
            console.note(
                "reel: warning: the token gives no right; --read, --publish, --inspect and --admin name the streams"
            )
        }
        if options[administering].contains(where: { $0 != "*" }) {
            console.note("reel: warning: --admin has an effect only as '*': what it opens belongs to no single stream")
        }
        let grant = TokenGrant(
            subject: subject,
            expiresAt: now + Int64(options[lifetime]),
            read: try patterns(options[read]),
            publish: try patterns(options[publishing]),
            inspect: try patterns(options[inspecting]),
            admin: try patterns(options[administering])
        )
        guard let token = mint.token(grant, now: now) else {
            throw CommandError(
                .badData,
                "found only the public half of the key in `\(file)`, which cannot sign, expected the secret half: name"
                    + " with --jwks the file that `reel token keygen` printed"
            )
        }
        if let refusal = refusal(of: Array(token.utf8), TokenVerifier(TokenKeys([key])), now: now) {
            throw CommandError(.usage, "no node would accept this token: \(refusal)")
        }
        try console.print(token)
        return .done
    }

    /// `reel token inspect`: shows the content of a token.
    static let tokenShow = Command(
        "token inspect",
        "show the rights of a token, and whether these keys verify it",
        about: """
            Reads the token from a file or standard input, so that the list of processes does not show it. Prints its
            rights, also if the token is refused; the token itself and its signature are not printed.
            """,
        operands: [Operand("FILE", .optional)],
        settings: [
            ServingArguments.keys.saying("verify it with the keys of this file, a JWK Set"), ServingArguments.issuer,
            ServingArguments.audience,
        ],
        required: [ServingArguments.keys],
        examples: [Example("reel token inspect --jwks public.json < token", "check that these keys verify it")]
    ) { options, console in
        let file = try options.required(ServingArguments.keys)
        var verifier = TokenVerifier(try keys(file))
        verifier.issuer = options[ServingArguments.issuer]
        verifier.audience = options[ServingArguments.audience]
        var token = try InputFile.read(options.operands.first ?? "-")
        while let last = token.last, last == 0x0A || last == 0x0D { token.removeLast() }
        let now = WallClock.nowMs() / 1_000
        if let grant = TokenVerifier.claims(of: token) {
            let left = grant.expiresAt - now
            try console.print("subject  \(grant.subject)")
            try console.print("expires  \(left > 0 ? "in \(left) s" : "\(-left) s ago")")
            try console.print("read     \(grant.read.map(\.description).joined(separator: " "))")
            try console.print("publish  \(grant.publish.map(\.description).joined(separator: " "))")
            for (right, patterns) in [("inspect", grant.inspect), ("admin  ", grant.admin)] where !patterns.isEmpty {
                try console.print("\(right)  \(patterns.map(\.description).joined(separator: " "))")
            }
        }
        if let refusal = refusal(of: token, verifier, now: now) { throw CommandError(.badData, refusal) }
        return .done
    }

    /// Returns why the token is refused; nil if it is valid. `now`: seconds since 1970.
    private static func refusal(of token: [UInt8], _ verifier: TokenVerifier, now: Int64) -> String? {
        do throws(TokenRefusal) {
            _ = try verifier.verify(token, now: now)
            return nil
        } catch {
            return error.description
        }
    }

    private static func keys(_ file: String) throws(CommandError) -> TokenKeys {
        let bytes: [UInt8]
        do throws(CommandError) {
            bytes = try InputFile.read(file)
        } catch {
            throw CommandError(
                error.code,
                "the key file \(error.message); expected is a JWK Set: correct the path, or create a file with `reel"
                    + " token keygen`"
            )
        }
        do throws(TokenRefusal) {
            return try TokenKeys(parsing: bytes)
        } catch {
            throw CommandError(.badData, "`\(file)`: \(error.description)")
        }
    }

    private static func patterns(_ texts: [String]) throws(CommandError) -> [StreamPattern] {
        try texts.map { text throws(CommandError) in
            guard let pattern = StreamPattern(text) else {
                throw CommandError(
                    .usage,
                    "`\(text)` is not a pattern; expected is a stream's name, or the beginning of names and *"
                )
            }
            return pattern
        }
    }

    private static let algorithm = Setting<String?>.text("alg", "ALG", otherwise: "EdDSA", "EdDSA, ES256 or HS256")
    private static let keyID = Setting<String?>.text("kid", "NAME", "name of the key; default: a random name")
    private static let publicHalf = Setting<String?>.text(
        "public",
        "FILE",
        "print the public halves of the keys in this file instead"
    )
    private static let subject = Setting<String?>.text(
        "sub",
        "NAME",
        "subject of the token: `by` of events published with it"
    )
    private static let read = Setting<[String]>.texts("read", "PATTERN", "streams to read")
    private static let publishing = Setting<[String]>.texts("publish", "PATTERN", "streams to publish to")
    private static let inspecting = Setting<[String]>.texts("inspect", "PATTERN", "streams whose sites can be listed")
    private static let administering = Setting<[String]>.texts(
        "admin",
        "PATTERN",
        "`*`: metrics, cluster and details of health; other patterns have no effect"
    )
    private static let lifetime = Setting<Int>.number(
        "for",
        "SECONDS",
        1...(10 * 366 * 86_400),
        default: 3_600,
        "seconds until it expires"
    )
}

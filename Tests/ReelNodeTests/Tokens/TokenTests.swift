import ReelCore
import ReelNet
import Testing

@testable import ReelNode

@Suite struct TokenTests {
    // MARK: Vectors

    @Test(
        "the examples of the standards hold",
        arguments: [
            // RFC 7515, A.1.
            (
                #"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#,
                "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxl"
                    + "LmNvbS9pc19yb290Ijp0cnVlfQ",
                "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
            ),
            // RFC 7515, A.3.
            (
                #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                    + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}"#,
                "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0"
                    + "cnVlfQ",
                "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
            ),
            // RFC 8037, A.4.
            (
                #"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","#
                    + #""x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
                "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
                "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
            ),
        ]
    )
    func theExamplesOfThe(_ jwk: String, _ signed: String, _ signature: String) throws {
        let keys = try TokenKeys(parsing: Array("{\"keys\":[\(jwk)]}".utf8))
        let key = try #require(keys.keys.first).key
        let bytes = try #require(Base64URL.decode(signature.utf8))
        #expect(key.verifies(bytes, of: Array(signed.utf8)))
        #expect(!key.verifies(bytes, of: Array((signed + "x").utf8)))
        #expect(!key.verifies(bytes.dropLast() + [], of: Array(signed.utf8)))
        for place in [0, 31, bytes.count - 1] {
            var other = bytes
            other[place] ^= 1
            #expect(!key.verifies(other, of: Array(signed.utf8)))
        }
        let again = try #require(key.signature(of: Array(signed.utf8)))
        #expect(key.verifies(again, of: Array(signed.utf8)))
        // Only ECDSA signatures contain randomness.
        #expect((again == bytes) == (key.algorithm != .es256))
    }

    // MARK: Accepted tokens

    @Test("a token that was made here is taken", arguments: SignatureKey.Algorithm.allCases)
    func aTokenThatWas(_ algorithm: SignatureKey.Algorithm) throws {
        let key = TokenKey(id: "a", key: try #require(SignatureKey.random(algorithm)))
        let grant = TokenGrant(subject: "ann", expiresAt: 1_000, read: patterns("todo-*"), publish: patterns("todo-7"))
        let token = try #require(TokenMint(key).token(grant, now: 900))
        let written = try TokenKeys(parsing: Array(TokenKeys([key]).text(withSecrets: true).utf8))
        #expect(try TokenVerifier(written).verify(Array(token.utf8), now: 999) == grant)
        #expect(refusal(token, TokenVerifier(written), now: 1_000)?.contains("expired") == true)
        if algorithm != .hs256 {
            let others = try TokenKeys(parsing: Array(TokenKeys([key]).text(withSecrets: false).utf8))
            #expect(try TokenVerifier(others).verify(Array(token.utf8), now: 999) == grant)
            #expect(TokenMint(others.keys[0]).token(grant, now: 900) == nil)
        }
    }

    @Test("inspect and admin are rights of their own, and a token without them is written as nodes before them read it")
    func rights() throws {
        let key = try hmac("a")
        let verifier = TokenVerifier(TokenKeys([key]))
        let grant = TokenGrant(
            subject: "ann",
            expiresAt: 2_000,
            read: [],
            publish: [],
            inspect: patterns("todo-*"),
            admin: patterns("*")
        )
        let token = try #require(TokenMint(key).token(grant, now: 1_000))
        #expect(try verifier.verify(Array(token.utf8), now: 1_000) == grant)
        let todo = try #require(StreamName("todo-7"))
        #expect(grant.mayInspect(todo) && !grant.mayRead(todo) && !grant.mayPublish(todo))
        let other = TokenGrant(
            subject: "ann",
            expiresAt: 1,
            read: patterns("*"),
            publish: patterns("*"),
            admin: patterns("*")
        )
        #expect(!other.mayInspect(todo))

        func claims(_ grant: TokenGrant) throws -> String {
            let token = try #require(TokenMint(key).token(grant, now: 1_000))
            return String(decoding: try #require(Base64URL.decode(token.split(separator: ".")[1].utf8)), as: UTF8.self)
        }
        let former = TokenGrant(subject: "ann", expiresAt: 2_000, read: patterns("a"), publish: [])
        #expect(try claims(former).contains(#""reel":{"read":["a"],"publish":[]}"#))
        #expect(try claims(grant).contains(#""reel":{"read":[],"publish":[],"inspect":["todo-*"],"admin":["*"]}"#))
    }

    @Test("a token without a key ID is taken where there is one key") func aTokenWithoutA() throws {
        let (one, two) = (try hmac("a"), try hmac("b"))
        let token = forge(header: #"{"alg":"HS256"}"#, claims: Self.claims, one)
        #expect(refusal(token, TokenVerifier(TokenKeys([one]))) == nil)
        #expect(refusal(token, TokenVerifier(TokenKeys([one, two])))?.contains("names no key") == true)
        let named = forge(header: #"{"alg":"HS256","kid":"b"}"#, claims: Self.claims, two)
        #expect(refusal(named, TokenVerifier(TokenKeys([one, two]))) == nil)
    }

    @Test("issuer and audience are checked where they are set") func issuerAndAudienceAre() throws {
        let key = try hmac("a")
        var verifier = TokenVerifier(TokenKeys([key]))
        verifier.issuer = "https://id.example"
        verifier.audience = "reel"
        let head = #"{"alg":"HS256","kid":"a"}"#
        func refusal(_ more: String) -> String? {
            self.refusal(forge(header: head, claims: Self.claims(more), key), verifier)
        }
        #expect(refusal(#","iss":"https://id.example","aud":"reel""#) == nil)
        #expect(refusal(#","iss":"https://id.example","aud":["x","reel"]"#) == nil)
        #expect(refusal(#","iss":"https://id.example""#)?.contains("aud") == true)
        #expect(refusal(#","iss":"https://id.example","aud":["x"]"#)?.contains("aud") == true)
        #expect(refusal(#","iss":"https://id.example/","aud":"reel""#)?.contains("iss") == true)
        #expect(refusal(#","aud":"reel""#)?.contains("iss") == true)
    }

    // MARK: Refused tokens with a correct signature

    static let claims = claims("")

    static func claims(_ more: String) -> String {
        #"{"sub":"ann","exp":2000,"reel":{"read":["*"],"publish":[]}\#(more)}"#
    }

    @Test(
        "a node refuses an invalid token",
        arguments: [
            (#"{"alg":"none","kid":"a"}"#, claims, "alg"),
            (#"{"alg":"HS512","kid":"a"}"#, claims, "alg"),
            (#"{"alg":"EdDSA","kid":"a"}"#, claims, "alg"),
            (#"{"alg":"hs256","kid":"a"}"#, claims, "alg"),
            (#"{"kid":"a"}"#, claims, "alg"),
            (#"{"alg":"HS256","kid":"b"}"#, claims, "is not in the key file"),
            (#"{"alg":"HS256","kid":7}"#, claims, "string"),
            (#"{"alg":"HS256","kid":"a","crit":["exp"],"exp":1}"#, claims, "crit"),
            (#"{"alg":"HS256","kid":"a","typ":"JWE"}"#, claims, "typ"),
            (#"{"alg":"HS256","kid":"a","alg":"HS256"}"#, claims, "twice"),
            (#"{"alg":"HS256","kid":"a"}x"#, claims, "no JSON"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","reel":{"read":[],"publish":[]}}"#, "exp"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":"2000","reel":{}}"#, "number"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":1e9,"reel":{}}"#, "integer"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":999,"reel":{}}"#, "expired"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"exp":2000,"reel":{}}"#, "sub"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"","exp":2000,"reel":{}}"#, "sub"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"a\nb","exp":2000,"reel":{}}"#, "sub"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000}"#, "reel"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000,"reel":{"raed":["*"]}}"#, "reel"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000,"reel":{"Inspect":["*"]}}"#, "no right"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000,"reel":{"inspect":true}}"#, "array"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000,"reel":{"admin":["a*b"]}}"#, "pattern"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000,"reel":{"read":["a*b"]}}"#, "pattern"),
            (#"{"alg":"HS256","kid":"a"}"#, #"{"sub":"ann","exp":2000,"reel":{"read":"*"}}"#, "array"),
            (#"{"alg":"HS256","kid":"a"}"#, claims(#","nbf":1061"#), "nbf"),
            (#"{"alg":"HS256","kid":"a"}"#, claims(#","iat":1061"#), "iat"),
            (#"{"alg":"HS256","kid":"a"}"#, claims(#","sub":"bob""#), "twice"),
            (#"{"alg":"HS256","kid":"a"}"#, claims(#","s\u0075b":"bob""#), "twice"),
            (#"{"alg":"HS256","kid":"a"}"#, "[]", "object"),
        ]
    )
    func refusesInvalidToken(_ header: String, _ claims: String, _ word: String) throws {
        let key = try hmac("a")
        let verifier = TokenVerifier(TokenKeys([key, try hmac("c")]))
        let said = refusal(forge(header: header, claims: claims, key), verifier)
        #expect(said?.contains(word) == true, "\(said ?? "taken")")
        #expect(refusal(forge(header: #"{"alg":"HS256","kid":"a"}"#, claims: Self.claims, key), verifier) == nil)
    }

    @Test("a little the clocks may differ") func aLittleTheClocks() throws {
        let key = try hmac("a")
        let token = forge(header: #"{"alg":"HS256"}"#, claims: Self.claims(#","nbf":1060,"iat":1060"#), key)
        #expect(refusal(token, TokenVerifier(TokenKeys([key]))) == nil)
    }

    @Test("a token of another form is refused") func aTokenOfAnother() throws {
        let key = try hmac("a")
        let verifier = TokenVerifier(TokenKeys([key]))
        let good = forge(header: #"{"alg":"HS256"}"#, claims: Self.claims, key)
        #expect(refusal(good, verifier) == nil)
        let last = try #require(good.last)
        // This last character has the same leading bits, so the bytes are the same and the text is another one.
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let place = try #require(alphabet.firstIndex(of: last))
        let twin = String(good.dropLast()) + String(alphabet[place ^ 1])
        for bad in [
            "", ".", "..", "a.b", good + ".", good + "=", good + "\n", " " + good, good.replacing("-", with: "+") + "+",
            twin, String(good.dropLast()), good + "A", String(repeating: "a", count: 8_193),
        ] {
            #expect(refusal(bad, verifier) != nil, "\(bad) was taken")
        }
        let padding = String(repeating: "x", count: 8_192)
        let long = forge(header: #"{"alg":"HS256"}"#, claims: Self.claims(#","x":"\#(padding)""#), key)
        #expect(refusal(long, verifier)?.contains("8192") == true)
    }

    @Test("an EC signature has sixty four bytes") func anECSignatureHas() throws {
        let key = TokenKey(id: nil, key: try #require(SignatureKey.random(.es256)))
        let grant = TokenGrant(subject: "ann", expiresAt: 2_000, read: [], publish: [])
        let token = try #require(TokenMint(key).token(grant, now: 1_000))
        let verifier = TokenVerifier(TokenKeys([key]))
        #expect(refusal(token, verifier) == nil)
        let parts = token.split(separator: ".")
        let raw = try #require(Base64URL.decode(parts[2].utf8))
        for bytes in [raw + [0], Array(raw.dropLast()), [0x30, 0x44, 2, 32] + raw[..<32] + [2, 32] + raw[32...]] {
            let said = refusal("\(parts[0]).\(parts[1]).\(Base64URL.encode(bytes))", verifier)
            #expect(said?.contains("not 64") == true, "\(said ?? "taken")")
        }
    }

    @Test("a secret public key is no HMAC key") func aSecretPublicKey() throws {
        // A known attack uses the public key of a pair as an HMAC secret.
        let pair = try #require(SignatureKey.random(.edDSA))
        guard case .ed25519(let publicKey, _) = pair.material else { return }
        let forger = TokenKey(id: "a", key: try #require(SignatureKey(.hmac(secret: publicKey))))
        let token = forge(header: #"{"alg":"HS256","kid":"a"}"#, claims: Self.claims, forger)
        let verifier = TokenVerifier(TokenKeys([TokenKey(id: "a", key: pair)]))
        #expect(refusal(token, verifier)?.contains("alg") == true)
    }

    // MARK: Keys

    @Test(
        "a key file that cannot be used is refused",
        arguments: [
            ("", "JSON"),
            ("{}", "keys"),
            (#"{"keys":[]}"#, "no key"),
            (#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#, "no key"),
            (#"{"keys":[{"kty":"oct","k":"c2hvcnQ"}]}"#, "at least 32"),
            (#"{"keys":[{"kty":"oct","k":"c2hvcnQ="}]}"#, "base64url"),
            (#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]}"#, "no key of its kind"),
            (
                #"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                    + #""y":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"}]}"#, "no key of its kind"
            ),
            (
                #"{"keys":[{"kty":"OKP","crv":"Ed25519","alg":"ES256","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
                "alg"
            ),
        ]
    )
    func aKeyFileThat(_ file: String, _ word: String) {
        let error = #expect(throws: TokenRefusal.self) { try TokenKeys(parsing: Array(file.utf8)) }
        #expect(error?.description.contains(word) == true, "\(error?.description ?? "")")
    }

    @Test("a node uses the supported keys of an identity provider's key file") func usesSupportedKeys() throws {
        let ours = TokenKeys([TokenKey(id: "a", key: try #require(SignatureKey.random(.es256)))]).text(
            withSecrets: false
        )
        let file = ours.replacing(
            "[\n",
            with: #"[{"kty":"RSA","kid":"r","use":"sig","n":"AQAB","e":"AQAB","x5c":["x"]},"#
        )
        let keys = try TokenKeys(parsing: Array(file.utf8))
        #expect(keys.keys.map(\.id) == ["a"])
        #expect(keys.unused == 1)
        let twice = ours.replacing("\n]", with: "," + ours.split(separator: "\n")[1] + "\n]")
        #expect(throws: TokenRefusal.self) { try TokenKeys(parsing: Array(twice.utf8)) }
    }

    // MARK: Patterns

    @Test("a pattern is a name or a beginning") func aPatternIsA() throws {
        let todo = try #require(StreamName("todo-7"))
        for text in ["todo-7", "todo-*", "todo-7*", "*", "t*"] {
            #expect(try #require(StreamPattern(text)).matches(todo), "\(text)")
        }
        for text in ["todo", "todo-", "todo-77", "odo-*", "todo-7:*", "Todo-*"] {
            #expect(try !#require(StreamPattern(text)).matches(todo), "\(text)")
        }
        for text in ["", "a*b", "**", "a/b", "~a", "~*", ".", "a?", "é", String(repeating: "a", count: 129)] {
            #expect(StreamPattern(text) == nil, "\(text)")
        }
    }

    // MARK: Parts

    private func patterns(_ texts: String...) -> [StreamPattern] { texts.compactMap { StreamPattern($0) } }

    private func hmac(_ id: String) throws -> TokenKey {
        TokenKey(id: id, key: try #require(SignatureKey.random(.hs256)))
    }

    /// Returns a token with any header and claims, and with a correct signature.
    private func forge(header: String, claims: String, _ key: TokenKey) -> String {
        let signed = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return signed + "." + Base64URL.encode(key.key.signature(of: Array(signed.utf8)) ?? [])
    }

    private func refusal(_ token: String, _ verifier: TokenVerifier, now: Int64 = 1_000) -> String? {
        do throws(TokenRefusal) {
            _ = try verifier.verify(Array(token.utf8), now: now)
            return nil
        } catch {
            return error.description
        }
    }
}

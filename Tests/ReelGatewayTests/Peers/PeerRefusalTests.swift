import ReelCore
import Testing

@testable import ReelGateway

/// Tests the reading of the refusals of snapshot nodes.
@Suite struct PeerRefusalTests {
    @Test("a gateway reads the members of a refusal that it acts on")
    func members() {
        let body = #"{"type":"urn:reel:error:truncated","code":"truncated","detail":"gone","first":7,"seq":9}"#
        let refusal = PeerRefusal(Array(body.utf8))
        #expect(refusal.code == .truncated && refusal.detail == "gone" && refusal.first == 7 && refusal.seq == 9)
    }

    @Test(
        "a body without usable members says nothing",
        arguments: [
            "", "502 Bad Gateway", "[]", "{}", #"{"code":"#, #"{"code":"no_code_of_reel"}"#,
            #"{"code":5,"detail":5,"first":"7","seq":-2}"#, "\u{1f}\u{8b}",
        ]
    )
    func nothing(_ body: String) {
        let refusal = PeerRefusal(Array(body.utf8))
        #expect(refusal.code == nil && refusal.detail == nil && refusal.first == nil && refusal.seq == .none)
    }
}

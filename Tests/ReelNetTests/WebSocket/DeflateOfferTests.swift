import Testing

@testable import ReelNet

/// Tests which offers of permessage-deflate (RFC 7692) the server accepts and declines.
@Suite struct DeflateOfferTests {
    private let plain = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

    private func answer(_ fields: String...) -> String? { DeflateOffer(in: fields)?.answer }

    @Test(
        "the server accepts a compression offer that it supports",
        arguments: [
            "permessage-deflate", "Permessage-Deflate", "permessage-deflate; server_no_context_takeover",
            "permessage-deflate; client_no_context_takeover", "permessage-deflate;client_max_window_bits",
            "permessage-deflate; client_max_window_bits=8", "permessage-deflate ;\tclient_max_window_bits = \"10\"",
            "permessage-deflate; client_max_window_bits; server_no_context_takeover; client_no_context_takeover",
            "x-webkit-deflate-frame, permessage-deflate", "bogus; a=\"b, permessage-deflate; c\", permessage-deflate",
        ]
    )
    func acceptsSupportedOffer(offer: String) { #expect(answer(offer) == plain) }

    @Test(
        "the server declines a compression offer that is unsupported or unknown",
        arguments: [
            "", ",", "x-webkit-deflate-frame", "permessage-deflate2", "permessage-deflate; unknown",
            "permessage-deflate; unknown=1", "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; client_no_context_takeover=\"\"", "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; client_max_window_bits=16", "permessage-deflate; client_max_window_bits=08",
            "permessage-deflate; client_max_window_bits=", "permessage-deflate; client_max_window_bits=\"1",
            "permessage-deflate; server_max_window_bits", "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=10", "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; client_max_window_bits; client_max_window_bits",
            "permessage-deflate; server_no_context_takeover; Server_No_Context_Takeover", "permessage-deflate;",
            "permessage-deflate=1", "bogus; a=\"permessage-deflate, b\"",
        ]
    )
    func declinesUnsupportedOffer(offer: String) { #expect(answer(offer) == nil) }

    @Test("the first offer that can be given counts") func theFirstOfferThat() {
        #expect(answer("permessage-deflate; server_max_window_bits=9, permessage-deflate") == plain)
        #expect(answer("permessage-deflate; server_max_window_bits=9", "permessage-deflate; bogus") == nil)
        let largest = "permessage-deflate; server_max_window_bits=15"
        #expect(answer("\(largest), permessage-deflate") == "\(plain); server_max_window_bits=15")
        #expect(answer("other", "\(largest)") == "\(plain); server_max_window_bits=15")
    }
}

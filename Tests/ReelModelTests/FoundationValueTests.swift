import Foundation
import Reel
import ReelClient
import ReelFoundation
import Testing

/// The values of Foundation in fields.
@Suite struct FoundationValueTests {
    private func roundTrip<Value: FieldValue & Equatable>(_ value: Value, _ json: JSONValue) throws {
        #expect(try value.json() == json)
        #expect(try Value(json: json) == value)
    }

    @Test("values of Foundation have one JSON form") func standard() throws {
        try roundTrip(Date(timeIntervalSince1970: 1_795_285_748.235), 1_795_285_748_235)
        let uuid = try #require(UUID(uuidString: "0E984725-C51C-4BF4-9960-E1C80E27ABA0"))
        try roundTrip(uuid, "0e984725-c51c-4bf4-9960-e1c80e27aba0")
        #expect(try UUID(json: .string(uuid.uuidString)) == uuid)
        try roundTrip(try #require(URL(string: "https://reel.example/a?b=%20")), "https://reel.example/a?b=%20")
        try roundTrip(Data([0, 255, 16]), "AP8Q")
        for text in ["0", "-12.5", "12345678901234567890.123456789", "0.001"] {
            try roundTrip(try #require(Decimal(string: text)), .string(text))
        }
        #expect(try Date?(json: nil) == .some(nil))
    }

    @Test("values without a form, and texts of another form, are refused") func refused() {
        #expect(throws: FieldValueError.self) { try Decimal.nan.json() }
        #expect(throws: FieldValueError.self) { try Date(timeIntervalSince1970: .infinity).json() }
        #expect(throws: FieldValueError.self) { try Date(timeIntervalSince1970: 1e300).json() }
        #expect(throws: FieldValueError.self) { try Date.distantPast.addingTimeInterval(-1e14).json() }
        #expect(throws: FieldValueError.self) { try Date(json: "today") }
        #expect(throws: FieldValueError.self) { try UUID(json: "0e984725") }
        #expect(throws: FieldValueError.self) { try Data(json: "AP8") }
        #expect(throws: FieldValueError.self) { try URL(json: 1) }
        for text in ["12abc", "", "1,5", "1e5", "NaN"] {
            #expect(throws: FieldValueError.self) { try Decimal(json: .string(text)) }
        }
    }

    @Test("a moment and a date convert into each other") func timestamps() {
        let moment = Timestamp(ms: 1_795_285_748_235)
        #expect(Timestamp(Date(moment)) == moment)
        #expect(Timestamp(Date(timeIntervalSince1970: .infinity)).ms == 1 << 53)
        #expect(Timestamp(Date(timeIntervalSince1970: .nan)).ms == 0)
    }
}

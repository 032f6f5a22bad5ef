import Reel
import ReelClient
import Testing

/// The JSON form of values, and the values that are refused.
@Suite struct ValueTests {
    private func roundTrip<Value: FieldValue & Equatable>(_ value: Value, _ json: JSONValue) throws {
        #expect(try value.json() == json)
        #expect(try Value(json: json) == value)
    }

    private func expectError<Value: FieldValue>(_ type: Value.Type, _ json: JSONValue) {
        #expect(throws: FieldValueError.self) { try Value(json: json) }
    }

    @Test("values of the standard library have one JSON form") func standard() throws {
        try roundTrip(true, true)
        try roundTrip(-7, -7)
        try roundTrip(Int64.max, "9223372036854775807")
        try roundTrip(1.25, 1.25)
        try roundTrip("é", "é")
        try roundTrip([1, 2], [1, 2])
        try roundTrip(Optional(3), 3)
        try roundTrip(Int?.none, nil)
        try roundTrip([Int?.none, 1], [nil, 1])
        try roundTrip(JSONValue.object(["a": [1]]), ["a": [1]])
        try roundTrip(Timestamp(ms: 1_795_285_748_235), 1_795_285_748_235)
        try roundTrip(ModelID<Job>("a"), "a")
        try roundTrip(Ref<Job>("a"), "a")
        try roundTrip(Label.urgent, "urgent")
    }

    @Test("integers are refused beyond ±2^53, and numbers that are not finite") func numbers() throws {
        let limit = 9_007_199_254_740_992
        try roundTrip(limit, 9_007_199_254_740_992)
        try roundTrip(-limit, -9_007_199_254_740_992)
        for integer in [limit + 1, -limit - 1, .max, .min] {
            #expect(throws: FieldValueError.self) { try integer.json() }
        }
        for number in [Double.nan, .infinity, -.infinity] {
            #expect(throws: FieldValueError.self) { try number.json() }
        }
        expectError(Int.self, .number(9_007_199_254_740_994))
        expectError(Int.self, 1.5)
        expectError(Int64.self, "9223372036854775808")
        expectError(Int64.self, 1.5)
        #expect(try Int64(json: 5) == 5)
    }

    @Test("a value of another type is an error that shows a short form of it")
    func wrongTypes() {
        expectError(Bool.self, 1)
        expectError(Int.self, "1")
        expectError(Double.self, "1")
        expectError(String.self, 1)
        expectError([Int].self, ["a"])
        expectError(Label.self, 1)
        expectError(Timestamp.self, "now")
        expectError(Rank.self, "a0\u{E9}")
        expectError(ModelID<Job>.self, "")
        expectError(ModelID<Job>.self, .string(String(repeating: "a", count: 129)))
        let long = JSONValue.string(String(repeating: "a", count: 700_000))
        let error = #expect(throws: FieldValueError.self) { try Int(json: long) }
        #expect(error?.found == "a text of 700000 bytes")
        #expect("\(FieldValueError(found: "NaN", expected: "a number"))" == "found NaN, expected a number")
    }

    @Test("an unknown case of an enum is no value, also in an array") func unknownCases() throws {
        #expect(try Label(json: "someday") == nil)
        #expect(try Label?(json: "someday") == nil)
        #expect(try [Label](json: ["later", "someday"]) == nil)
    }

    @Test("ids are equal by their bytes, and random ids differ") func ids() {
        #expect(ModelID<Job>("\u{E9}") != ModelID<Job>("e\u{301}"))
        #expect(ModelID<Job>("a") < "b" && Set([ModelID<Job>("a"), "a"]).count == 1)
        let ids = Set((0..<1_000).map { _ in ModelID<Job>.random() })
        #expect(ids.count == 1_000 && ids.allSatisfy { $0.text.utf8.count == 26 })
    }

    @Test("the present moment is after 2020 and does not run backwards") func now() {
        let first = Timestamp.now
        #expect(first.ms > 1_577_836_800_000 && first <= .now)
    }
}

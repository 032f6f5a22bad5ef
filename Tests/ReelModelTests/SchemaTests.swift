import Reel
import Testing

/// The faults of schemas, in words.
@Suite struct SchemaTests {
    private struct Bad: Model {
        let id: ID
        var a = ""
        var b = ""
        var count = 1
        var tags: Set<String> = ["x"]
        var note = "x"
        var data: [UInt8] = [1]
        var due: Int? = 5
        var ratio = Double.nan
        var rank = Rank.middle
        var place = Rank.middle

        init(id: ID) { self.id = id }

        static let schema = Schema<Bad>("bad") {
            Field("a", \.a)
            Field("a", \.b)
        }
    }

    private func faults(_ name: String = "bad", @SchemaBuilder<Bad> _ fields: () -> [SchemaField<Bad>]) -> [SchemaFault]
    {
        Schema<Bad>(name, fields).faults()
    }

    @Test("a schema without faults has none") func good() {
        #expect(Job.schema.faults().isEmpty && JobList.schema.faults().isEmpty)
    }

    @Test("two fields of one name, and one property twice, are faults") func twice() {
        #expect(Bad.schema.faults() == [.fieldTwice(model: "bad", field: "a")])
        let property = faults {
            Bad.Field("a", \.a)
            Bad.Text("b", \.a)
        }
        #expect(property == [.propertyTwice(model: "bad", fields: ["a", "b"])])
        let places = faults {
            Bad.Order("a", \.rank)
            Bad.Order("b", \.place)
        }
        #expect(places == [.orderTwice(model: "bad", fields: ["a", "b"])])
    }

    @Test("a former name that another field uses is a fault") func formerly() {
        let taken = faults {
            Bad.Field("a", \.a, formerly: "b")
            Bad.Field("b", \.b)
        }
        #expect(taken == [.formerNameTaken(model: "bad", field: "a", formerly: "b")])
        let twice = faults {
            Bad.Field("a", \.a, formerly: "c")
            Bad.Field("b", \.b, formerly: "c")
        }
        #expect(twice == [.formerNameTaken(model: "bad", field: "b", formerly: "c")])
        let own = faults { Bad.Field("a", \.a, formerly: "a") }
        #expect(own == [.formerNameTaken(model: "bad", field: "a", formerly: "a")])
    }

    @Test("empty and long names are faults") func names() {
        let long = String(repeating: "n", count: 129)
        let found = faults("") {
            Bad.Field("", \.a)
            Bad.Field("b", \.b, formerly: long)
        }
        let names = ["", "", long]
        #expect(found == names.map { .badName(model: "", name: $0) })
    }

    @Test("a default that an absent field does not have is a fault") func defaults() {
        let found = faults {
            Bad.Counter("count", \.count)
            Bad.MergedSet("tags", \.tags)
            Bad.Text("note", \.note)
            Bad.Bytes("data", \.data)
            Bad.Field("due", \.due)
        }
        #expect(
            found == [
                .badDefault(model: "bad", field: "count", found: "1", expected: "0"),
                .badDefault(model: "bad", field: "tags", found: "an array of 1 values", expected: "[]"),
                .badDefault(model: "bad", field: "note", found: "\"x\"", expected: "\"\""),
                .badDefault(model: "bad", field: "data", found: "\"\\u0001\"", expected: "\"\""),
                .badDefault(model: "bad", field: "due", found: "5", expected: "nil"),
            ]
        )
        // A default that no field can hold is an error of the first insert, because it may be replaced before.
        #expect(faults { Bad.Field("ratio", \.ratio) }.isEmpty)
    }

    @Test("an error names all faults in words") func words() {
        #expect("\(Bad.schema.faults()[0])" == "found two fields of the name a in the model bad")
    }
}

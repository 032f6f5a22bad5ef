import ReelKafka
import Testing

@Suite
struct KafkaLibraryTests {
    @Test("the library reports its version") func reportsVersion() {
        #expect(KafkaLibrary.version.split(separator: ".").count >= 3)
    }
}

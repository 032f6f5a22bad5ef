import Testing

@Suite struct Tidy {
}

#pragma once
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// Macros that Swift cannot import.

static const uint64_t reel_SSL_OP_STRICT = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION;
static const int reel_EVP_PKEY_PUBLIC_KEY = EVP_PKEY_PUBLIC_KEY;
static const int reel_EVP_PKEY_KEYPAIR = EVP_PKEY_KEYPAIR;
static const unsigned long reel_XN_FLAG_RFC2253 = XN_FLAG_RFC2253;

static inline int reel_SSL_CTX_set_proto_versions(SSL_CTX *context, int least, int most) {
    return SSL_CTX_set_min_proto_version(context, least) && SSL_CTX_set_max_proto_version(context, most);
}

static inline void reel_SSL_CTX_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }

static inline void reel_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline int reel_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline void reel_BIO_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

static inline void reel_BIO_clear_retry_flags(BIO *bio) { BIO_clear_retry_flags(bio); }

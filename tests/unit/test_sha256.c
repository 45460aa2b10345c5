/* SHA-256 with the vectors of NIST (FIPS 180-4 examples and SHA256ShortMsg.rsp), and HMAC-SHA-256
 * with those of RFC 4231. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/sha256.h"

static void assert_hex(const unsigned char hash[DDP_SHA256_BYTES], const char *expected)
{
    char hex[2 * DDP_SHA256_BYTES + 1];
    for (size_t i = 0; i < DDP_SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(hex, expected);
}

static void hash_is(const void *data, size_t bytes, const char *expected)
{
    unsigned char out[DDP_SHA256_BYTES];
    for (size_t step = 1; step <= 129; step += 64) { /* also in pieces */
        struct ddp_sha256 s;
        ddp_sha256_init(&s);
        for (size_t at = 0; at < bytes; at += step)
            ddp_sha256_add(&s, (const char *)data + at, bytes - at < step ? bytes - at : step);
        ddp_sha256_end(&s, out);
        assert_hex(out, expected);
    }
}

static void test_sha256(void **state)
{
    (void)state;
    static char million[1000000];
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    static const char four_blocks[] =
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
        "mnopqrsmnopqrstnopqrstu";
    hash_is("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_is("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_is("\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
    hash_is(two_blocks, strlen(two_blocks),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hash_is(four_blocks, strlen(four_blocks),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    memset(million, 'a', sizeof million);
    hash_is(million, sizeof million,
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void mac_is(const void *key, size_t key_bytes, const char *text, size_t bytes,
                   const char *expected)
{
    unsigned char out[DDP_SHA256_BYTES];
    ddp_hmac_sha256(key, key_bytes, text, bytes, out);
    assert_hex(out, expected);
}

static void test_hmac(void **state)
{
    (void)state;
    unsigned char key[131], out[DDP_SHA256_BYTES];
    char data[50];
    memset(key, 0x0b, 20);
    mac_is(key, 20, "Hi There", 8,
           "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    mac_is("Jefe", 4, "what do ya want for nothing?", 28,
           "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    memset(data, 0xdd, sizeof data);
    mac_is(key, 20, data, sizeof data,
           "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (int i = 0; i < 25; i++)
        key[i] = (unsigned char)(i + 1);
    memset(data, 0xcd, sizeof data);
    mac_is(key, 25, data, sizeof data,
           "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    /* RFC 4231 cuts the result of test case 5 to 128 bits. */
    memset(key, 0x0c, 20);
    ddp_hmac_sha256(key, 20, "Test With Truncation", 20, out);
    assert_memory_equal(out, "\xa3\xb6\x16\x74\x73\x10\x0e\xe0\x6e\x0c\x79\x6c\x29\x55\x55\x2b",
                        16);
    memset(key, 0xaa, sizeof key);
    mac_is(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
           "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    static const char large[] =
        "This is a test using a larger than block-size key and a larger than block-size data. The "
        "key needs to be hashed before being used by the HMAC algorithm.";
    mac_is(key, sizeof key, large, strlen(large),
           "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

static void test_equal(void **state)
{
    (void)state;
    unsigned char a[32] = {1, 2, 3}, b[32] = {1, 2, 3};
    assert_true(ddp_equal_in_constant_time(a, b, sizeof a));
    for (size_t i = 0; i < sizeof a; i++) {
        b[i] ^= 0x80;
        assert_false(ddp_equal_in_constant_time(a, b, sizeof a));
        b[i] ^= 0x80;
    }
    assert_true(ddp_equal_in_constant_time(a, b, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),
        cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

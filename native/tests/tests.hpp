// The parts of tamis_tests that have a file of their own.
#pragma once

namespace tamis::tests {

void test_headers();
void test_host_settings();
void test_choice();
void test_proofs();
void test_rounding();
void test_statistics();

}  // namespace tamis::tests

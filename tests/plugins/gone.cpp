// The library that missing_dependency needs and that nobody finds: it lies where no search path leads.
extern "C" __attribute__((visibility("default"))) int tenon_test_gone_function() { return 1; }

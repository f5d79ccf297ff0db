// A plugin of QEMU's emulators of programs, which counts the program's instructions and prints them at its end.
//
// Debian's QEMU comes without qemu-plugin.h, so what is used of its first version is declared here.

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
typedef struct qemu_info_t qemu_info_t;

extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb*));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int operation, void* counter,
                                                     uint64_t more);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void*), void* data);

int qemu_plugin_version = 1;

static uint64_t count;

static void at_translation(plugin_id id, struct qemu_plugin_tb* block) {
    const int add = 0;
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, add, &count, qemu_plugin_tb_n_insns(block));
}

static void at_exit(plugin_id id, void* data) {
    (void)id, (void)data;
    fprintf(stderr, "instructions: %" PRIu64 "\n", count);
}

int qemu_plugin_install(plugin_id id, const qemu_info_t* info, int argc, char** argv) {
    (void)info, (void)argc, (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}

#include <agentwal.h>
struct wal_changes_info *pointer_2;
struct wal_checkpoint *pointer_3;
struct wal_checkpoints *pointer_4;
struct wal_docs *pointer_5;
struct wal_docs_options *pointer_6;
struct wal_file_changes *pointer_7;
struct wal_heads *pointer_8;
struct wal_iter *pointer_9;
struct wal_iter_options *pointer_10;
struct wal_list *pointer_11;
struct wal_list_options *pointer_12;
struct wal_migration *pointer_13;
struct wal_resume_options *pointer_14;
struct wal_rewind_answer *pointer_15;
struct wal_rewind_info *pointer_16;
struct wal_view_import_report *pointer_17;
struct wal_view_place *pointer_18;
struct wal_view_report *pointer_19;
char size_20[sizeof(struct wal_changes_info)];
char size_21[sizeof(struct wal_checkpoint)];
char size_22[sizeof(struct wal_checkpoints)];
char size_23[sizeof(struct wal_docs)];
char size_24[sizeof(struct wal_docs_options)];
char size_25[sizeof(struct wal_file_changes)];
char size_26[sizeof(struct wal_heads)];
char size_27[sizeof(struct wal_iter)];
char size_28[sizeof(struct wal_iter_options)];
char size_29[sizeof(struct wal_list)];
char size_30[sizeof(struct wal_list_options)];
char size_31[sizeof(struct wal_migration)];
char size_32[sizeof(struct wal_resume_options)];
char size_33[sizeof(struct wal_rewind_answer)];
char size_34[sizeof(struct wal_rewind_info)];
char size_35[sizeof(struct wal_view_import_report)];
char size_36[sizeof(struct wal_view_place)];
char size_37[sizeof(struct wal_view_report)];
enum wal_docs_flag enum_38;
enum wal_entry_type enum_39;
enum wal_iter_flag enum_40;
enum wal_iter_mode enum_41;
enum wal_list_flag enum_42;
enum wal_resume_from enum_43;
enum wal_resume_how enum_44;
enum wal_resume_mode enum_45;
enum wal_resume_target enum_46;
static long f_47(void) { return (long)&wal_checkpoint_close; }
static long f_48(void) { return (long)&wal_checkpoint_next; }
static long f_49(void) { return (long)&wal_checkpoint_open; }
static long f_50(void) { return (long)&wal_checkpoint_status; }
static long f_51(void) { return (long)&wal_checkpoints_close; }
static long f_52(void) { return (long)&wal_checkpoints_next; }
static long f_53(void) { return (long)&wal_checkpoints_open; }
static long f_54(void) { return (long)&wal_docs_close; }
static long f_55(void) { return (long)&wal_docs_get; }
static long f_56(void) { return (long)&wal_docs_next; }
static long f_57(void) { return (long)&wal_docs_open; }
static long f_58(void) { return (long)&wal_entry_type_name; }
static long f_59(void) { return (long)&wal_file_changes_close; }
static long f_60(void) { return (long)&wal_file_changes_next; }
static long f_61(void) { return (long)&wal_file_changes_status; }
static long f_62(void) { return (long)&wal_heads_close; }
static long f_63(void) { return (long)&wal_heads_next; }
static long f_64(void) { return (long)&wal_heads_open; }
static long f_65(void) { return (long)&wal_iter_close; }
static long f_66(void) { return (long)&wal_iter_get; }
static long f_67(void) { return (long)&wal_iter_next; }
static long f_68(void) { return (long)&wal_iter_open; }
static long f_69(void) { return (long)&wal_iter_remaining; }
static long f_70(void) { return (long)&wal_list_close; }
static long f_71(void) { return (long)&wal_list_cursor; }
static long f_72(void) { return (long)&wal_list_next; }
static long f_73(void) { return (long)&wal_list_open; }
static long f_74(void) { return (long)&wal_rewind_close; }
static long f_75(void) { return (long)&wal_rewind_get_info; }
static long f_76(void) { return (long)&wal_rewind_next; }
static long f_77(void) { return (long)&wal_rewind_status; }
static long f_78(void) { return (long)&wal_session_changes; }
static long f_79(void) { return (long)&wal_session_checkpointing; }
static long f_80(void) { return (long)&wal_session_latest; }
static long f_81(void) { return (long)&wal_session_resume; }
static long f_82(void) { return (long)&wal_session_status; }
static long f_83(void) { return (long)&wal_store_eventfd; }
static long f_84(void) { return (long)&wal_store_status; }
static long f_85(void) { return (long)&wal_view_odd; }
static long f_86(void) { return (long)WAL_CURSOR_SIZE; }
static long f_87(void) { return (long)WAL_DOCS_HISTORY; }
static long f_88(void) { return (long)WAL_DOCS_KEYS; }
static long f_89(void) { return (long)WAL_ECROWDED; }
static long f_90(void) { return (long)WAL_EHEAD; }
static long f_91(void) { return (long)WAL_ESKIPPED; }
static long f_92(void) { return (long)WAL_ESTALE; }
static long f_93(void) { return (long)WAL_ITER_ALL; }
static long f_94(void) { return (long)WAL_ITER_BRANCH; }
static long f_95(void) { return (long)WAL_ITER_DELTAS; }
static long f_96(void) { return (long)WAL_ITER_DURABLE; }
static long f_97(void) { return (long)WAL_ITER_OUT_OF_LINE; }
static long f_98(void) { return (long)WAL_ITER_REDACTED; }
static long f_99(void) { return (long)WAL_ITER_SINCE_COMPACTION; }
static long f_100(void) { return (long)WAL_LIST_LINEAGE; }
static long f_101(void) { return (long)WAL_RESUME_FORK; }
static long f_102(void) { return (long)WAL_RESUME_ID; }
static long f_103(void) { return (long)WAL_RESUME_IN_PLACE; }
static long f_104(void) { return (long)WAL_RESUME_LATEST; }

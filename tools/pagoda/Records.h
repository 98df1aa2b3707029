//===- Records.h - Tuned schedules for a specification ----------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tuning database a command uses, and what it says about the kernels at
// hand. A record that is of no use is named and left out: kernels are then what
// they would be without a database.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_TOOLS_PAGODA_RECORDS_H
#define PAGODA_TOOLS_PAGODA_RECORDS_H

#include "compiler/tune/Database.h"
#include "tools/pagoda/SpecOptions.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace pagoda {

/// --db, else $PAGODA_DB, else the user's cache directory. Empty: none.
std::string databasePath();

/// That database, to record in. Errors: --db none; those of Database::open.
llvm::Expected<Database> openToRecord();

/// --context: tokens of the sequences that decode kernels are for.
llvm::Expected<int64_t> wantedKvLen();

/// Takes the schedules of matching records into `specification`, with a note
/// for each, and says on standard error that it did. Not with --schedule, which
/// starts from the formula's choice, nor with --mods, which is not tuned.
/// Records that do not fit are warnings. An error: the database that --db names
/// cannot be read.
llvm::Error useRecords(Specification &specification);

/// Calls `attempt`, which compiles `specification`. If that fails because of
/// settled schedules alone, a warning says so and they are dropped.
llvm::Error
withRecords(Specification &specification,
            llvm::function_ref<llvm::Error(const Specification &)> attempt);

/// The fields of `schedule` that differ from those of `from`.
std::string scheduleChanges(llvm::StringRef from, llvm::StringRef schedule);

/// What --json says of a record, without its key.
llvm::json::Object toJson(const TuningRecord &record);

} // namespace pagoda

#endif // PAGODA_TOOLS_PAGODA_RECORDS_H

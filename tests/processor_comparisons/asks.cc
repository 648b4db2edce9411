// What scripts/processor-comparisons has to find; compiled nowhere.

bool has_byte_swap(CpuModel model) { return model >= CpuModel::i486; }

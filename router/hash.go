package router

// PartitionOf returns the partition, 0..partitions-1, of a location published
// on subject. It is what the NATS server's subject transform
// {{partition(n)}} computes, so that a stream, a core subscriber and every
// replica agree without talking. partitions must be positive.
func PartitionOf(subject string, partitions int) int {
	return int(fnv32a(subject) % uint32(partitions))
}

// SlotOf returns the slot, 0..Slots-1, of a device: the unit of order of a
// consumer inside a partition. It is part of the stored format.
func SlotOf(device string) int {
	return int(fnv32a(device) % Slots)
}

// fnv32a is FNV-1a with 32 bits. hash/fnv would have the string copied to a
// byte slice, for each fix.
func fnv32a(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h ^= uint32(s[i])
		h *= 16777619
	}
	return h
}

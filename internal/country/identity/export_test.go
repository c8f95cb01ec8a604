package identity

// KeptBytesMax bounds what a keeper holds.
const KeptBytesMax = keptBytesMax

// Held says how much a keeper holds.
func (k *Keeper) Held() (identities int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept), k.bytes
}

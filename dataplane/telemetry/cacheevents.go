package telemetry

// CacheEvent is an event that flow caches count. The list is closed: dumps and metrics come from
// it.
type CacheEvent uint8

// The events.
const (
	CacheHit CacheEvent = iota
	CacheFirst
	CacheMiss
	CacheUnfit
	CacheChanged
	CacheLearned
	CacheKept
	CacheOnce
	CacheRefused
	CacheDisplaced
	CacheOverShare
	CacheFlushed
	MegaflowHit
	MegaflowMiss
	MegaflowKept
	MegaflowOnce
	MegaflowRefused
	MegaflowDisplaced
	MegaflowWidened
	MegaflowVoid
	NumCacheEvents
)

var cacheTexts = [NumCacheEvents]struct{ name, sentence string }{
	CacheHit:       {"hit", "Packets that an entry of the exact-match cache served, without a lookup."},
	CacheFirst:     {"first_hit", "First packets of connections that a first-packet megaflow served, without a lookup."},
	CacheMiss:      {"miss", "Packets that walked the tables because the cache had no entry for them."},
	CacheUnfit:     {"unfit", "Packets that always walk: neither TCP, UDP nor ICMP echo, fragments, VLAN tags, IP options."},
	CacheChanged:   {"changed", "Packets that walked because their connection had changed or was about to."},
	CacheLearned:   {"learned", "Packets that walked because learned entries had changed."},
	CacheKept:      {"kept", "Walks that were stored in the exact-match cache."},
	CacheOnce:      {"once", "Walks that were not stored, because their packet was the first of its kind."},
	CacheRefused:   {"refused", "Walks that were not stored, because other ports own the places by their share."},
	CacheDisplaced: {"displaced", "Entries that another entry of their port displaced."},
	CacheOverShare: {"over_share", "Entries beyond the share of their port that an entry of another port displaced."},
	CacheFlushed:   {"flushed", "Entries that a change of the pipeline or the ports made invalid."},

	MegaflowHit:       {"megaflow_hit", "Segments of walks that a megaflow served, without a lookup."},
	MegaflowMiss:      {"megaflow_miss", "Segments that were walked because no megaflow matched."},
	MegaflowKept:      {"megaflow_kept", "Megaflows that were stored."},
	MegaflowOnce:      {"megaflow_once", "Segments that were not stored, because they were the first of their kind."},
	MegaflowRefused:   {"megaflow_refused", "Segments that were not stored: other ports own the places by their share, or they examine too many bits."},
	MegaflowDisplaced: {"megaflow_displaced", "Megaflows that others displaced."},
	MegaflowWidened:   {"megaflow_widened", "Times that a table had too many masks, so that one of them got more bits."},
	MegaflowVoid:      {"megaflow_void", "Megaflow paths that a change of a table or a mask made invalid."},
}

// String is the event's name, as metrics show it.
func (e CacheEvent) String() string { return cacheTexts[e].name }

// Sentence tells an operator what the event counts.
func (e CacheEvent) Sentence() string { return cacheTexts[e].sentence }

// CacheStats is the contents of the workers' flow caches, as of their last batch, and their
// counts.
type CacheStats struct {
	// Entries are stored walks; Paths is how many different paths they have. Room is how many
	// entries fit before the caches grow.
	Entries uint64 `json:"entries"`
	Paths   uint64 `json:"paths"`
	Room    uint64 `json:"room"`
	// Megaflows are stored megaflows, including void ones until their place is needed. Shapes is
	// how many different masks they have.
	Megaflows uint64      `json:"megaflows"`
	Shapes    uint64      `json:"shapes"`
	Events    CacheEvents `json:"events"`
}

// CacheEvents is counts by CacheEvent.
type CacheEvents [NumCacheEvents]uint64

// CacheShape is a mask of megaflows that begin in a table.
type CacheShape struct {
	Table uint8 `json:"table"`
	// Fields is the fields of the mask. A field with some bits has a mask:
	// "in_port,nw_src/255.0.0.0,tcp_dst/0xff00". Ports are named as TCP's, whatever the protocol.
	Fields string `json:"fields"`
	// Packets is how many packets replayed a megaflow of this mask.
	Packets uint64 `json:"packets"`
}

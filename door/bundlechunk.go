package door

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// A large bundle is almost only entries, and most of its time goes into parsing them. The reader
// gathers entries into chunks, which goroutines parse while more lines arrive:
//
//   1. The bundle, and the line in an error, equal those of reading line by line: chunks enter
//      the bundle in the order of their lines.
//   2. No chunk is parsed while a line of another kind is read, because that line may change the
//      names that entries use.
//   3. At most two chunks a processor are parsed at a time. So memory stays bounded, and a wrong
//      line ends the reading soon.
//   4. ReadBundle waits for every chunk. No goroutine is left when it returns.

// chunkBytes is the text of a chunk in bytes: about three hundred entries.
const chunkBytes = 32 << 10

// chunk has entries to add, and their parser. The reader reuses it.
type chunk struct {
	parser  *parse.Parser
	text    strings.Builder // the entries, a line each
	lines   []int           // the numbers of their lines in the bundle
	entries []*flow.Entry   // up to the first wrong line
	actions []uint64        // the hash of each entry's actions as text
	err     error           // of the first wrong line
	done    chan struct{}   // gets a value when the chunk is parsed
}

// addFlow adds an entry's line to the chunk that is being filled.
func (r *bundleReader) addFlow(line []byte) error {
	r.group = false
	if r.filling != nil && r.filling.text.Len()+len(line) >= chunkBytes {
		if err := r.parseChunk(); err != nil {
			return err
		}
	}
	if r.filling == nil {
		r.filling = r.emptyChunk()
		r.filling.text.Grow(max(chunkBytes, len(line)+1))
	}
	c := r.filling
	c.text.Write(line)
	c.text.WriteByte('\n')
	c.lines = append(c.lines, r.no)
	return nil
}

// emptyChunk is a chunk without entries.
func (r *bundleReader) emptyChunk() *chunk {
	if last := len(r.idle) - 1; last >= 0 {
		c := r.idle[last]
		r.idle = r.idle[:last]
		return c
	}
	return &chunk{parser: parse.NewParser(r.names), done: make(chan struct{}, 1)}
}

// parseChunk starts parsing the chunk that is being filled. If enough chunks are being parsed, it
// first puts the oldest into the bundle.
func (r *bundleReader) parseChunk() error {
	c := r.filling
	if c == nil {
		return r.wrong
	}
	r.filling, r.parsing = nil, append(r.parsing, c)
	go c.runParse(r.seed)
	if len(r.parsing) < 2*runtime.GOMAXPROCS(0) {
		return r.wrong
	}
	return r.collect()
}

// collectAll waits for all entries that are being parsed, and puts them into the bundle. The error
// is that of the first wrong line.
func (r *bundleReader) collectAll() error {
	err := r.parseChunk()
	for len(r.parsing) > 0 {
		err = r.collect()
	}
	r.follows = false
	return err
}

// collect waits for the oldest chunk, and puts its entries into the bundle. The error is that of
// the first wrong line, of this chunk or an earlier one.
func (r *bundleReader) collect() error {
	c := r.parsing[0]
	r.parsing = slices.Delete(r.parsing, 0, 1)
	<-c.done
	if r.wrong == nil {
		r.wrong = r.addChunk(c)
	}
	c.text.Reset()
	clear(c.entries) // only the bundle keeps them
	c.lines, c.entries, c.actions = c.lines[:0], c.entries[:0], c.actions[:0]
	r.idle = append(r.idle, c)
	return r.wrong
}

// addChunk puts a chunk's entries into the bundle, up to the first wrong line.
func (r *bundleReader) addChunk(c *chunk) error {
	for i, e := range c.entries {
		if err := r.addEntry(e, c.actions[i]); err != nil {
			return fmt.Errorf("line %d: %w", c.lines[i], err)
		}
	}
	if c.err != nil {
		return fmt.Errorf("line %d: %w", c.lines[len(c.entries)], c.err)
	}
	return nil
}

// addEntry puts an entry into the bundle, or joins it to the previous one.
func (r *bundleReader) addEntry(e *flow.Entry, actions uint64) error {
	all := r.bundle.Add
	follows := r.follows
	r.follows = true
	if follows {
		if last := all[len(all)-1]; last.Priority == e.Priority && last.Identity() == e.Identity() {
			return last.Join(e)
		}
	}
	r.intern(actions, e)
	r.bundle.Add = append(all, e)
	return nil
}

// maxShared is the number of lists of actions that intern compares. If most entries have their
// own list, more would only cost memory.
const maxShared = 8192

// intern makes entries with the same actions share one list. It compares the actions too, because
// the same text may mean different ones. mod_tp_dst depends on the protocol of the match, and
// output:NAME on the names.
func (r *bundleReader) intern(text uint64, e *flow.Entry) {
	if n := len(e.Actions); n == 0 || isConjunction(e.Actions[n-1]) {
		return // conjunctions may be joined with others
	}
	if same, known := r.same[text]; known && reflect.DeepEqual(same, e.Actions) {
		e.Actions = same
		return
	}
	if len(r.same) < maxShared {
		r.same[text] = e.Actions
	}
}

func isConjunction(a flow.Action) bool {
	_, is := a.(flow.Conjunction)
	return is
}

// runParse parses a chunk up to the first wrong line.
func (c *chunk) runParse(seed maphash.Seed) {
	for line := range strings.Lines(c.text.String()) {
		line = line[:len(line)-1]
		var e *flow.Entry
		if e, c.err = c.parser.Entry(line); c.err != nil {
			break
		}
		_, actions, _ := strings.Cut(line, "actions=")
		c.entries = append(c.entries, e)
		c.actions = append(c.actions, maphash.String(seed, actions))
	}
	c.done <- struct{}{}
}

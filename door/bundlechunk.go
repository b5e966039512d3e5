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

// A large bundle is entries nearly all, and most of its time goes into parsing them. The
// reader gathers entries into chunks, which goroutines parse while more lines arrive:
//
//  1. The bundle, and the line that an error names, are those of reading line by line:
//     chunks are put into the bundle in the order of their lines.
//  2. No chunk is parsed while a line of another kind is read, because that line may
//     change the names that entries use.
//  3. Two chunks a processor exist at a time. So the text is not held until the end, and
//     a wrong line ends the reading soon.
//  4. ReadBundle waits for every chunk. No goroutine is left when it returns.

// chunkBytes is how much text is parsed at a time: some three hundred entries.
const chunkBytes = 32 << 10

// chunk is entries to add, and the parser that reads them. It is used again and again.
type chunk struct {
	parser  *parse.Parser
	text    strings.Builder // the entries, a line each
	lines   []int           // the numbers of their lines in the bundle
	entries []*flow.Entry   // as far as they are right
	actions []uint64        // the hash of each entry's actions as text
	err     error           // of the first line that is wrong
	done    chan struct{}   // gets a value when all is parsed
}

// addFlow notes an entry, which is parsed with others.
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

// parseChunk has the chunk that is being filled parsed. If enough chunks are being parsed, it
// puts the first of them into the bundle.
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

// gather waits for the entries that are being parsed, and puts them into the bundle. The
// error is that of the first line that is wrong.
func (r *bundleReader) gather() error {
	err := r.parseChunk()
	for len(r.parsing) > 0 {
		err = r.collect()
	}
	r.follows = false
	return err
}

// collect waits for the chunk that was begun first, and puts its entries into the bundle.
// The error is that of the first line that is wrong, of this chunk or one before.
func (r *bundleReader) collect() error {
	c := r.parsing[0]
	r.parsing = slices.Delete(r.parsing, 0, 1)
	<-c.done
	if r.wrong == nil {
		r.wrong = r.putAll(c)
	}
	c.text.Reset()
	clear(c.entries) // only the bundle keeps them
	c.lines, c.entries, c.actions = c.lines[:0], c.entries[:0], c.actions[:0]
	r.idle = append(r.idle, c)
	return r.wrong
}

// putAll puts a chunk's entries into the bundle, up to the first line that is wrong.
func (r *bundleReader) putAll(c *chunk) error {
	for i, e := range c.entries {
		if err := r.put(e, c.actions[i]); err != nil {
			return fmt.Errorf("line %d: %w", c.lines[i], err)
		}
	}
	if c.err != nil {
		return fmt.Errorf("line %d: %w", c.lines[len(c.entries)], c.err)
	}
	return nil
}

// put puts an entry into the bundle, or joins it to the one before.
func (r *bundleReader) put(e *flow.Entry, actions uint64) error {
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

// maxShared is how many lists of actions intern looks among. Where most entries have their own,
// a list of all would only cost memory.
const maxShared = 8192

// intern has entries with the same actions hold one list of them. The same text may mean
// different actions: mod_tp_dst depends on the protocol of the match, and output:NAME on
// the names.
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

// runParse parses a chunk up to the first line that is wrong.
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

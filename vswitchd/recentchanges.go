package vswitchd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// A switch that is killed begins again with the entries of its file, which may miss the last
// changes. Controllers do not notice, so nobody would repeat those changes. This process does:
// it remembers each change until the file has it.
//
// The changes are repeated in their order, and some may be in the file already. The result is
// right all the same: a change says what an entry, group or meter is, not how it differs.

// changes is the switch as controllers change it. It implements door.Switch.
type changes struct {
	*door.Client

	mu       sync.Mutex // held during a change, so that they are repeated in their order
	instance string     // the switch that has them
	recent   []recentChange
	size     int  // of all recent
	missing  bool // there were too many to remember
	inFile   bool // some are forgotten, because the file has them
	// The file has the first marked changes when it is of generation mark.
	marked int
	mark   uint64
}

// maxRecent is how many entries, groups and meters are remembered at most.
const maxRecent = 1 << 20

// forgetTime is how often the switch is asked what its file has.
const forgetTime = time.Second

// recentChange is a change: a bundle, or the text of one.
type recentChange struct {
	bundle *flow.Bundle     // nil if there is a text
	text   *door.BundleText // of a bundle that only adds entries
	size   int              // entries, groups and meters that it names
}

// apply applies the change.
func (r *recentChange) apply(to *door.Client) error {
	if r.bundle != nil {
		return to.Apply(r.bundle)
	}
	return to.ApplyText(r.text)
}

// Apply implements door.Pipeline.
func (c *changes) Apply(b *flow.Bundle) error {
	own := *b
	if b.Names != nil {
		own.Names = b.Names.Clone() // the caller may go on with its own
	}
	n := len(b.Add) + len(b.Delete) + len(b.Groups) + len(b.Meters) + len(b.DeleteGroups) + len(b.DeleteMeters)
	return c.change(recentChange{bundle: &own, size: n})
}

// ApplyText implements ofserver.Switch.
func (c *changes) ApplyText(t *door.BundleText) error {
	return c.change(recentChange{text: t, size: t.Entries()})
}

// change applies a change, and remembers it.
func (c *changes) change(r recentChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.apply(c.Client); err != nil {
		return err
	}
	if r.bundle != nil && r.bundle.Replace {
		c.forgetAll()
		c.inFile = false
	}
	if c.missing {
		return nil
	}
	if c.size += 1 + r.size; c.size > maxRecent {
		c.forgetAll()
		c.missing = true
		return nil
	}
	c.recent = append(c.recent, r)
	return nil
}

// forgetAll forgets all changes. c.mu is held.
func (c *changes) forgetAll() {
	c.recent, c.size, c.missing, c.marked, c.mark = nil, 0, false, 0, 0
}

// runForget forgets what the switch's file has, until ctx ends.
func (c *changes) runForget(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(forgetTime):
			c.forget(ctx)
		}
	}
}

// forget forgets what the switch's file has.
func (c *changes) forget(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) == 0 && !c.missing {
		return
	}
	i, err := c.Info(ctx)
	if err != nil || i.Instance != c.instance { // another switch, which has not begun yet
		return
	}
	switch {
	case i.Kept >= i.Generation: // c.mu is held, so there are no later changes
		c.forgetAll()
		c.inFile = true
	case c.mark != 0 && i.Kept >= c.mark:
		for _, r := range c.recent[:c.marked] {
			c.size -= 1 + r.size
		}
		c.recent, c.marked, c.mark = slices.Clone(c.recent[c.marked:]), 0, 0
		c.inFile = true
	case c.mark == 0:
		c.marked, c.mark = len(c.recent), i.Generation
	}
}

// Why changes are not repeated.
var (
	errMissing = errors.New("there were too many since the file was written")
	errNoFile  = errors.New("the switch has not read the file")
)

// repeat has a switch that has begun go on where the one before was killed. again says that
// there was one before. After an error the entries are not those that controllers have sent.
func (c *changes) repeat(ctx context.Context) (again bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, err := c.Info(ctx)
	if err != nil || i.Instance == c.instance {
		return false, err
	}
	again = c.instance != ""
	c.instance, c.marked, c.mark = i.Instance, 0, 0
	switch {
	case !again:
		return false, nil
	case c.missing:
		c.forgetAll()
		return true, errMissing
	case c.inFile && i.Names == nil:
		c.forgetAll()
		return true, errNoFile
	}
	for i := range c.recent {
		if err := c.recent[i].apply(c.Client); err != nil {
			c.forgetAll()
			return true, err
		}
	}
	return true, nil
}

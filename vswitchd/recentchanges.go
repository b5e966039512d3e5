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
	recent   []*flow.Bundle
	size     int  // sizeOf all recent
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

// sizeOf is how many entries, groups and meters a change names.
func sizeOf(b *flow.Bundle) int {
	return 1 + len(b.Add) + len(b.Delete) + len(b.Groups) + len(b.Meters) + len(b.DeleteGroups) + len(b.DeleteMeters)
}

// Apply implements door.Pipeline.
func (c *changes) Apply(b *flow.Bundle) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.Client.Apply(b); err != nil {
		return err
	}
	if b.Replace {
		c.forgetAll()
		c.inFile = false
	}
	c.remember(b)
	return nil
}

// remember appends a change. c.mu is held.
func (c *changes) remember(b *flow.Bundle) {
	if c.missing {
		return
	}
	if c.size += sizeOf(b); c.size > maxRecent {
		c.forgetAll()
		c.missing = true
		return
	}
	own := *b
	if b.Names != nil {
		own.Names = b.Names.Clone() // the caller may go on with its own
	}
	c.recent = append(c.recent, &own)
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
		for _, b := range c.recent[:c.marked] {
			c.size -= sizeOf(b)
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
	for _, b := range c.recent {
		if err := c.Client.Apply(b); err != nil {
			c.forgetAll()
			return true, err
		}
	}
	return true, nil
}

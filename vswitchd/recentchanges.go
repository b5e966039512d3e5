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

// A switch that was killed begins again with the entries of its file, which may lack the last
// changes. Controllers do not notice the kill, so they do not send those changes again. This
// process does: it records each change until the file has it.
//
// The process replays the changes in their order. The file may already have some of them. That does
// no harm, because a change gives the whole entry, group or meter and not a difference.

// changeRecorder is a switch that records its changes. It implements door.Switch.
type changeRecorder struct {
	*door.Client

	mu        sync.Mutex // held during a change, so that recent has the switch's order
	instance  string     // the process of the switch that has the changes
	recent    []recentChange
	size      int  // of all recent
	missing   bool // recent is empty because there were more than maxRecent
	forgotten bool // some changes were dropped from recent, because the file has them
	// A file of generation mark or later has the first marked changes.
	marked int
	mark   uint64
}

// maxRecent is the largest number of recorded entries, groups and meters.
const maxRecent = 1 << 20

// forgetTime is the interval between two checks of the generation in the switch's file.
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
func (c *changeRecorder) Apply(b *flow.Bundle) error {
	own := *b
	if b.Names != nil {
		own.Names = b.Names.Clone() // the caller may change its own
	}
	n := len(b.Add) + len(b.Delete) + len(b.Groups) + len(b.Meters) + len(b.DeleteGroups) + len(b.DeleteMeters)
	return c.applyAndRecord(recentChange{bundle: &own, size: n})
}

// ApplyText implements ofserver.Switch.
func (c *changeRecorder) ApplyText(t *door.BundleText) error {
	return c.applyAndRecord(recentChange{text: t, size: t.Entries()})
}

// applyAndRecord applies a change and records it.
func (c *changeRecorder) applyAndRecord(r recentChange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := r.apply(c.Client); err != nil {
		return err
	}
	if r.bundle != nil && r.bundle.Replace {
		c.forgetAll()
		c.forgotten = false
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

// forgetAll drops all recorded changes. c.mu is held.
func (c *changeRecorder) forgetAll() {
	c.recent, c.size, c.missing, c.marked, c.mark = nil, 0, false, 0, 0
}

// runForget drops the changes that the switch's file has, until ctx ends.
func (c *changeRecorder) runForget(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(forgetTime):
			c.forgetWritten(ctx)
		}
	}
}

// forgetWritten drops the changes that the switch's file has.
func (c *changeRecorder) forgetWritten(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) == 0 && !c.missing {
		return
	}
	i, err := c.Info(ctx)
	if err != nil || i.Instance != c.instance { // a new process, for which replay has not run yet
		return
	}
	switch {
	case i.Kept >= i.Generation: // c.mu is held, so there are no later changes
		c.forgetAll()
		c.forgotten = true
	case c.mark != 0 && i.Kept >= c.mark:
		for _, r := range c.recent[:c.marked] {
			c.size -= 1 + r.size
		}
		c.recent, c.marked, c.mark = slices.Clone(c.recent[c.marked:]), 0, 0
		c.forgotten = true
	case c.mark == 0:
		c.marked, c.mark = len(c.recent), i.Generation
	}
}

// The reasons why changes are not replayed.
var (
	errMissing = errors.New("there were too many since the file was written")
	errNoFile  = errors.New("the switch has not read the file")
)

// replay applies the recorded changes to a new process of the switch. again is false if there was
// no process before. After an error the switch lacks entries that controllers have sent.
func (c *changeRecorder) replay(ctx context.Context) (again bool, err error) {
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
	case c.forgotten && i.Names == nil:
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

package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"golang.org/x/sys/unix"
)

// heldRoutes lets the switch hold the sockets of multicast routes, so that they outlive the
// agent. The agent keeps copies for the next switch, in case this one is killed. It implements
// host.RouteKeeper.
type heldRoutes struct {
	sw *door.Client
	// borrows is set if the agent launches the next switch, as in switchPorts.
	borrows bool

	mu     sync.Mutex
	kept   host.KeptRoutes
	copies []int
}

// heldName identifies the routes in the switch.
const heldName = "multicast-routes"

// Keep implements host.RouteKeeper.
func (h *heldRoutes) Keep(kept host.KeptRoutes, sockets []int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.copy(kept, sockets); err != nil {
		return err
	}
	return h.sw.GiveHeld(heldName, kept, sockets)
}

// Kept implements host.RouteKeeper.
func (h *heldRoutes) Kept() (kept host.KeptRoutes, sockets []int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sockets, err = h.sw.LendHeld(heldName, &kept); err == nil {
		err = h.copy(kept, sockets)
	}
	if err != nil {
		door.CloseDescriptors(sockets)
		return kept, nil, err
	}
	return kept, sockets, nil
}

// copy replaces the kept copies. The caller holds h.mu.
func (h *heldRoutes) copy(kept host.KeptRoutes, sockets []int) error {
	door.CloseDescriptors(h.copies)
	h.kept, h.copies = kept, nil
	if !h.borrows {
		return nil
	}
	for _, s := range sockets {
		fd, err := unix.FcntlInt(uintptr(s), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("copies of multicast routes: %w", err)
		}
		h.copies = append(h.copies, fd)
	}
	return nil
}

// again gives the kept sockets to a restarted switch.
func (h *heldRoutes) again(sw *door.Client) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.copies) == 0 {
		return nil
	}
	return sw.GiveHeld(heldName, h.kept, h.copies)
}

// runMulticast runs multicast once the switch has the entries of all objects. Until then the
// previous agent's routes stay.
func (a *Agent) runMulticast(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-a.live.synced:
		a.multicast.Run(ctx)
	}
}

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/cni"
)

// Del takes an interface from a sandbox. That nothing is there is no error: a
// runtime calls it again until it succeeds, and after an ADD that failed.
func (n *Node) Del(ctx context.Context, r *cni.Request) error {
	unlock, err := n.lock(ctx, r.Attachment)
	if err != nil {
		return err
	}
	defer unlock()
	a, ok := n.record.find(r.Attachment)
	if !ok {
		return nil
	}
	if err := n.remove(&a); err != nil {
		return asError("interface "+a.Interface, err)
	}
	n.Log.Info("pod detached", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "interface", a.Interface, "addresses", a.addrs(), "port", a.Link)
	return nil
}

// remove takes an attachment back, as far as it was made: the entries first, so that
// no packet finds its address when the next one has it, and the record last.
func (n *Node) remove(a *attachment) error {
	n.setPlugged(a.Attachment, false)
	n.step("unplugged")
	if err := n.removeLink(a.Link); err != nil {
		return err
	}
	n.step("unlinked")
	if a.Table != 0 {
		if s, err := openSandbox(a.Netns); err == nil && s.id == a.NetnsID {
			a.removeRules(s)
			s.close()
		}
	}
	err := n.record.forget(a.Attachment)
	n.step("forgotten")
	return err
}

// GC removes the attachments of a network that are not among the valid ones. One that
// somebody is making or removing meanwhile is left alone.
func (n *Node) GC(_ context.Context, r *cni.Request) error {
	var errs []error
	for _, a := range n.record.all() {
		if a.Network != r.Network || slices.Contains(r.Valid, a.Attachment) {
			continue
		}
		turn, free := n.tryLock(a.Attachment)
		if !free {
			continue
		}
		errs = append(errs, n.collect(a.Attachment, "nobody has it any more"))
		n.unlock(a.Attachment, turn)
	}
	if err := errors.Join(errs...); err != nil {
		return asError("garbage collection", err)
	}
	return nil
}

// Sweep removes attachments whose sandbox has ended without DEL: a runtime that lost
// what it knew never calls it. Link and sandbox have to be gone; where one of them
// is there, somebody may use it or ask for it, and DEL, GC or scarcity decides.
func (n *Node) Sweep() {
	n.eachEnded(func(a *attachment) {
		s, err := openSandbox(a.Netns)
		if err == nil {
			ended := s.id != a.NetnsID
			if s.close(); !ended {
				return
			}
		} else if !errors.Is(err, errGone) {
			return
		}
		n.sweepUp(a, "its sandbox is gone, and DEL never came")
	})
}

// sweep removes attachments whose link is gone, and tells whether there were any. It
// is for when addresses are scarce.
func (n *Node) sweep() (some bool) {
	n.eachEnded(func(a *attachment) { some = n.sweepUp(a, "its link is gone") || some })
	return some
}

// sweepUp removes an attachment, and logs why or why not.
func (n *Node) sweepUp(a *attachment, why string) bool {
	err := n.collect(a.Attachment, why)
	if err != nil {
		n.Log.Error("a pod's attachment cannot be cleared away; its addresses stay taken", "error", err)
	}
	return err == nil
}

// eachEnded calls f for the attachments whose link is gone, and with it the sandbox's
// end, in their turn: DEL never came, or came to no agent while this one began.
// Where the link is there somebody may use it, whatever else is known.
func (n *Node) eachEnded(f func(*attachment)) {
	for _, a := range n.record.all() {
		turn, free := n.tryLock(a.Attachment)
		if !free {
			continue
		}
		if now, ok := n.record.find(a.Attachment); ok {
			if _, err := n.home.links.LinkByName(now.Link); noLink(err) {
				f(&now)
			}
		}
		n.unlock(a.Attachment, turn)
	}
}

// collect removes an attachment that may be gone by now.
func (n *Node) collect(k cni.Attachment, why string) error {
	a, ok := n.record.find(k)
	if !ok {
		return nil
	}
	if err := n.remove(&a); err != nil {
		return fmt.Errorf("%s of %s: %w", k.Interface, k.Container, err)
	}
	n.Log.Info("pod detached", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "interface", a.Interface, "addresses", a.addrs(), "port", a.Link, "why", why)
	return nil
}

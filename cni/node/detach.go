package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/cni"
)

// Del removes an interface from a sandbox. If there is none, that is not an error: a runtime
// repeats DEL until it succeeds, and calls it after a failed ADD.
func (n *Node) Del(ctx context.Context, r *cni.Request) error {
	unlock, err := n.lock(ctx, r.Attachment)
	if err != nil {
		return err
	}
	defer unlock()
	a, ok := n.record.findAttachment(r.Attachment)
	if !ok {
		return nil
	}
	if err := n.remove(&a); err != nil {
		return asError("interface "+a.Interface, err)
	}
	n.Log.Info("pod detached", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "interface", a.Interface, "addresses", a.addrs(), "port", a.Link)
	return nil
}

// remove undoes an attachment, as far as it was made. The entries go first, so that they do
// not match the address's next owner. The record goes last.
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
	err := n.record.removeAttachment(a.Attachment)
	n.step("forgotten")
	return err
}

// GC removes the attachments of a network that are not valid. It skips those that another
// call is making or removing.
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
		errs = append(errs, n.collect(a.Attachment, "the runtime does not list it as valid"))
		n.unlock(a.Attachment, turn)
	}
	if err := errors.Join(errs...); err != nil {
		return asError("garbage collection", err)
	}
	return nil
}

// Sweep removes attachments whose sandbox ended without DEL, as after a runtime lost its
// state. Both link and sandbox must be gone. If one of them exists, something may still use
// it; then DEL, GC or a lack of addresses removes it.
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

// sweep removes attachments whose link is gone, and says whether there were any. ADD calls
// it if no address is free.
func (n *Node) sweep() (some bool) {
	n.eachEnded(func(a *attachment) { some = n.sweepUp(a, "its link is gone") || some })
	return some
}

// sweepUp removes an attachment and logs why. If that fails, it logs the error.
func (n *Node) sweepUp(a *attachment, why string) bool {
	err := n.collect(a.Attachment, why)
	if err != nil {
		n.Log.Error("a pod's attachment cannot be removed; its addresses stay in use", "error", err)
	}
	return err == nil
}

// eachEnded calls f for each attachment whose link is gone, and holds the attachment's lock
// meanwhile. Such a sandbox ended without DEL, or its DEL found no agent. If the link
// exists, the Pod may still use it.
func (n *Node) eachEnded(f func(*attachment)) {
	for _, a := range n.record.all() {
		turn, free := n.tryLock(a.Attachment)
		if !free {
			continue
		}
		if now, ok := n.record.findAttachment(a.Attachment); ok {
			if _, err := n.home.links.LinkByName(now.Link); noLink(err) {
				f(&now)
			}
		}
		n.unlock(a.Attachment, turn)
	}
}

// collect removes an attachment, if the record still has it.
func (n *Node) collect(k cni.Attachment, why string) error {
	a, ok := n.record.findAttachment(k)
	if !ok {
		return nil
	}
	if err := n.remove(&a); err != nil {
		return fmt.Errorf("%s of %s: %w", k.Interface, k.Container, err)
	}
	n.Log.Info("pod detached", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "interface", a.Interface, "addresses", a.addrs(), "port", a.Link, "why", why)
	return nil
}

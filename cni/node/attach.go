package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// Add gives a sandbox an interface. It returns when the port is open and the switch has all
// entries for the Pod. If the attachment exists already, the result is the same again. The
// result is nil if addresses are delegated and the request has none.
//
// The order is: write the record, make the link, plug it in, wait for the entries, mark the
// attachment as made. So the record has the attachment for as long as any part of it may
// exist. After an error, Add removes the parts in reverse order.
func (n *Node) Add(ctx context.Context, r *cni.Request) (*types100.Result, error) {
	if r.Pod.Namespace == "" || r.Pod.Name == "" {
		return nil, types.NewError(types.ErrInvalidEnvironmentVariables, "CNI_ARGS name no Pod", "K8S_POD_NAMESPACE and K8S_POD_NAME are needed")
	}
	ctx, cancel := context.WithTimeout(ctx, n.Wait)
	defer cancel()
	unlock, err := n.lock(ctx, r.Attachment)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if a, ok := n.record.findAttachment(r.Attachment); ok {
		why, doubt := n.staleReason(&a)
		switch {
		case doubt != nil:
			return nil, asError("interface "+a.Interface, doubt)
		case why == nil && a.Netns == r.Netns:
			return n.repeatAdd(ctx, &a)
		}
		if err := n.remove(&a); err != nil {
			return nil, asError("remove what an earlier call left", err)
		}
	}
	if r.Delegated && r.IPAM == nil {
		return nil, nil
	}
	return n.attach(ctx, r)
}

// attach makes a new attachment.
func (n *Node) attach(ctx context.Context, r *cni.Request) (*types100.Result, error) {
	s, err := n.sandboxFor(r.Netns)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := n.await(ctx, func() error { return n.Switch.Pod(r.Pod) }); err != nil {
		return nil, err
	}
	what := attachment{
		Attachment: r.Attachment, Netns: r.Netns, NetnsID: s.id, Network: r.Network, Pod: r.Pod, Egress: r.Egress, Routed: n.routed(r),
	}
	a, err := n.reserve(what, r)
	if isTaken(err) && n.sweep() {
		a, err = n.reserve(what, r)
	}
	if err != nil {
		return nil, asError("the record", err)
	}
	n.step("reserved")
	if err = n.build(ctx, &a, s); err == nil {
		err = n.record.markMade(a.Attachment)
	}
	n.step("kept")
	var result *types100.Result
	if err == nil {
		result, err = n.result(&a)
	}
	if err != nil {
		return nil, asError("interface "+a.Interface, errors.Join(err, n.remove(&a)))
	}
	n.Log.Info("pod attached", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "interface", a.Interface, "addresses", a.addrs(), "port", a.Link, "ofPort", a.OFPort)
	return result, nil
}

// routed says whether a Pod is attached by layer 3. The Pod's annotation outranks the
// configuration.
func (n *Node) routed(r *cni.Request) bool {
	if how := n.Switch.Attach(r.Pod); how != "" {
		return how == cni.AttachRouted
	}
	return r.Routed
}

// build makes the link of a reserved attachment, plugs it in and waits for its entries.
func (n *Node) build(ctx context.Context, a *attachment, s *sandbox) error {
	if err := n.makeLink(a, s); err != nil {
		return err
	}
	n.step("linked")
	if err := n.setUp(a, s); err != nil {
		return err
	}
	n.step("up")
	n.setPlugged(a.Attachment, true)
	n.step("plugged")
	return n.await(ctx, func() error { return n.inForce(a) })
}

// repeatAdd answers an ADD whose attachment exists already.
func (n *Node) repeatAdd(ctx context.Context, a *attachment) (*types100.Result, error) {
	if err := n.await(ctx, func() error { return n.inForce(a) }); err != nil {
		return nil, err
	}
	return n.result(a)
}

// inForce says why an attachment's port does not pass packets yet, or nil.
func (n *Node) inForce(a *attachment) error {
	p, ok := n.portOf(a)
	if !ok {
		return errors.New("the Pod has a newer sandbox")
	}
	return n.Switch.InForce(p)
}

// await calls ask until its answer is nil or final (a *types.Error), or ctx ends.
func (n *Node) await(ctx context.Context, ask func() error) error {
	for {
		changed := n.Switch.Changed()
		err := ask()
		if err == nil || errors.As(err, new(*types.Error)) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return later("the switch is not ready yet", err)
		}
	}
}

// asError gives an error a CNI code: its own, or ErrIOFailure.
func asError(what string, err error) error {
	var e *types.Error
	if !errors.As(err, &e) {
		return cni.Errorf(types.ErrIOFailure, what, err)
	}
	if err.Error() == e.Error() {
		return e
	}
	return types.NewError(e.Code, e.Msg, fmt.Sprint(err))
}

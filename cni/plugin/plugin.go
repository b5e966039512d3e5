// Package plugin is the runtime's side of the CNI plugin. It reads environment and
// configuration, and asks the agent. If the configuration names an IPAM plugin, that
// gives the addresses. It keeps no state.
//
//	conf.go    the network configuration, CNI_ARGS
//	plugin.go  the verbs
//	away.go    DEL without an agent
package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// waitAtMost is how long the agent may take to answer. The agent itself waits for less,
// until a Pod is known and its entries are in the switch.
const waitAtMost = 90 * time.Second

// Verbs are the plugin's functions, one for each verb.
func Verbs() skel.CNIFuncs {
	return skel.CNIFuncs{
		Add:    timed(add),
		Del:    timed(del),
		Check:  timed(check),
		GC:     timed(gc),
		Status: timed(status),
	}
}

// timed parses the configuration for a verb, and limits its time.
func timed(verb func(context.Context, *call) error) func(*skel.CmdArgs) error {
	return func(args *skel.CmdArgs) error {
		ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
		defer cancel()
		c, err := newCall(args)
		if err != nil {
			return err
		}
		return verb(ctx, c)
	}
}

// call is one call of the plugin.
type call struct {
	*skel.CmdArgs
	conf
	request cni.Request
}

func newCall(args *skel.CmdArgs) (*call, error) {
	c := &call{CmdArgs: args}
	if err := c.conf.parse(args.StdinData); err != nil {
		return nil, err
	}
	pod, err := podOf(args.Args)
	if err != nil {
		return nil, err
	}
	egress, err := c.RuntimeConfig.Bandwidth.limit()
	if err != nil {
		return nil, err
	}
	c.request = cni.Request{
		Attachment: cni.Attachment{Container: args.ContainerID, Interface: args.IfName},
		Netns:      args.Netns, Network: c.Name, Pod: pod, Delegated: c.delegated(), Routed: c.Attach == cni.AttachRouted, Egress: egress,
	}
	return c, nil
}

// askAgent sends the request to the agent. If no agent listens, the error says to try
// again.
func (c *call) askAgent(ctx context.Context, v cni.Verb) (*cni.Reply, error) {
	reply, err := (&cni.Client{Socket: c.Socket}).SendRequest(ctx, v, &c.request)
	if errors.Is(err, cni.ErrAway) {
		return nil, cni.Errorf(types.ErrTryAgainLater, "no agent answers", err)
	}
	return reply, err
}

// add implements ADD. With an IPAM plugin it asks the agent first without addresses. If the
// attachment exists, that call returns it, and the IPAM plugin is not called.
func add(ctx context.Context, c *call) error {
	if c.PrevResult != nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "found a prevResult, expected none",
			cni.Type+" makes the interface, so it comes first in the list of plugins")
	}
	reply, err := c.askAgent(ctx, cni.Add)
	if err == nil && reply.Result == nil {
		reply, err = c.addDelegated(ctx)
	}
	if err != nil {
		return err
	}
	if !c.DNS.IsEmpty() {
		reply.Result.DNS = c.DNS
	}
	return types.PrintResult(reply.Result, c.CNIVersion)
}

// addDelegated adds with addresses of the IPAM plugin. First it releases those that a
// killed call may have left. If the agent refuses, it releases the new ones.
func (c *call) addDelegated(ctx context.Context) (*cni.Reply, error) {
	if err := c.delegateDel(ctx); err != nil {
		return nil, err
	}
	given, err := invoke.DelegateAdd(ctx, c.IPAM.Type, c.StdinData, nil)
	if err != nil {
		return nil, delegation(c.IPAM.Type, err)
	}
	c.request.IPAM, err = types100.NewResultFromResult(given)
	if err != nil {
		err = cni.Errorf(types.ErrDecodingFailure, "the result of IPAM plugin "+c.IPAM.Type+"", err)
	}
	var reply *cni.Reply
	if err == nil {
		reply, err = c.askAgent(ctx, cni.Add)
	}
	if err == nil && reply.Result == nil {
		err = types.NewError(types.ErrInternal, "the agent gave no result", "")
	}
	if err != nil {
		return nil, withFailure(err, c.delegateDel(ctx))
	}
	return reply, nil
}

// withFailure adds a later error to the details of a CNI error.
func withFailure(err, after error) error {
	var e *types.Error
	if after == nil || !errors.As(err, &e) {
		return err
	}
	return types.NewError(e.Code, e.Msg, fmt.Sprintf("%s; then: %v", e.Details, after))
}

// del implements DEL. If something is gone already, or no agent runs, that is not an error:
// otherwise a Pod could not end without an agent.
func del(ctx context.Context, c *call) error {
	_, err := (&cni.Client{Socket: c.Socket}).SendRequest(ctx, cni.Del, &c.request)
	if errors.Is(err, cni.ErrAway) {
		err = removeInside(c.Netns, c.IfName)
	}
	if err != nil {
		return err
	}
	if c.delegated() {
		return c.delegateDel(ctx)
	}
	return nil
}

func (c *call) delegateDel(ctx context.Context) error {
	return delegation(c.IPAM.Type, invoke.DelegateDel(ctx, c.IPAM.Type, c.StdinData, nil))
}

// check implements CHECK.
func check(ctx context.Context, c *call) error {
	if c.PrevResult == nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "prevResult is missing", "CHECK compares it with the attachment")
	}
	var err error
	if c.request.Previous, err = types100.NewResultFromResult(c.PrevResult); err != nil {
		return cni.Errorf(types.ErrDecodingFailure, "prevResult", err)
	}
	if c.delegated() {
		if err := delegation(c.IPAM.Type, invoke.DelegateCheck(ctx, c.IPAM.Type, c.StdinData, nil)); err != nil {
			return err
		}
	}
	_, err = c.askAgent(ctx, cni.Check)
	return err
}

// gc implements GC.
func gc(ctx context.Context, c *call) error {
	for _, a := range c.ValidAttachments {
		c.request.Valid = append(c.request.Valid, cni.Attachment{Container: a.ContainerID, Interface: a.IfName})
	}
	if _, err := c.askAgent(ctx, cni.GC); err != nil {
		return err
	}
	if c.delegated() {
		return delegation(c.IPAM.Type, invoke.DelegateGC(ctx, c.IPAM.Type, c.StdinData, nil))
	}
	return nil
}

// status implements STATUS. Without an agent the error is that connectivity is limited.
func status(ctx context.Context, c *call) error {
	_, err := (&cni.Client{Socket: c.Socket}).SendRequest(ctx, cni.Status, &c.request)
	if errors.Is(err, cni.ErrAway) {
		return cni.Errorf(types.ErrLimitedConnectivity, "no agent answers", err)
	}
	if err != nil {
		return err
	}
	if c.delegated() {
		return delegation(c.IPAM.Type, invoke.DelegateStatus(ctx, c.IPAM.Type, c.StdinData, nil))
	}
	return nil
}

// delegation names the IPAM plugin in its error, and keeps the error's own code if it has
// one.
func delegation(plugin string, err error) error {
	if err == nil {
		return nil
	}
	var e *types.Error
	if errors.As(err, &e) {
		return types.NewError(e.Code, "IPAM plugin "+plugin+": "+e.Msg, e.Details)
	}
	return cni.Errorf(types.ErrInvalidNetworkConfig, "IPAM plugin "+plugin, err)
}

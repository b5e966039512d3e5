// Package plugin is the runtime's side of the CNI plugin: it reads environment
// and configuration, lets an IPAM plugin give addresses when the configuration
// names one, and asks the agent for the rest. It keeps nothing.
//
//	conf.go    the network configuration, CNI_ARGS
//	plugin.go  the verbs
//	away.go    DEL while there is no agent
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

// waitAtMost is how long the agent may take to answer: it waits itself, for less,
// until a Pod is known and its entries are in the switch.
const waitAtMost = 90 * time.Second

// Verbs are the plugin as a runtime calls it.
func Verbs() skel.CNIFuncs {
	return skel.CNIFuncs{
		Add:    timed(add),
		Del:    timed(del),
		Check:  timed(check),
		GC:     timed(gc),
		Status: timed(status),
	}
}

// timed gives a verb a context and its configuration.
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

// askAgent asks the agent. ErrAway is an error that tells the runtime to try again.
func (c *call) askAgent(ctx context.Context, v cni.Verb) (*cni.Reply, error) {
	reply, err := (&cni.Client{Socket: c.Socket}).SendRequest(ctx, v, &c.request)
	if errors.Is(err, cni.ErrAway) {
		return nil, cni.Errorf(types.ErrTryAgainLater, "no agent answers", err)
	}
	return reply, err
}

// add implements ADD. With an IPAM plugin the agent is asked twice: what it has
// given before it gives again, without addresses anew.
func add(ctx context.Context, c *call) error {
	if c.PrevResult != nil {
		return types.NewError(types.ErrInvalidNetworkConfig, "there is a prevResult",
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

// addDelegated lets the IPAM plugin give addresses, in place of those that a call
// which was killed may have left, and takes them back when the agent refuses them.
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
		err = cni.Errorf(types.ErrDecodingFailure, "the addresses that "+c.IPAM.Type+" gave", err)
	}
	var reply *cni.Reply
	if err == nil {
		reply, err = c.askAgent(ctx, cni.Add)
	}
	if err == nil && reply.Result == nil {
		err = types.NewError(types.ErrInternal, "the agent gave no result", "")
	}
	if err != nil {
		return nil, told(err, c.delegateDel(ctx))
	}
	return reply, nil
}

// told is an error with what else went wrong after it.
func told(err, after error) error {
	var e *types.Error
	if after == nil || !errors.As(err, &e) {
		return err
	}
	return types.NewError(e.Code, e.Msg, fmt.Sprintf("%s; then: %v", e.Details, after))
}

// del implements DEL. Whatever is gone already is no error, and that the agent is
// away is none: it would keep a Pod from ending for as long.
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
		return types.NewError(types.ErrInvalidNetworkConfig, "there is no prevResult", "CHECK compares with what ADD has given")
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

// status implements STATUS. Without an agent nobody forwards what running Pods
// send.
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

// delegation is an error of an IPAM plugin, with its own code if it gave one.
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

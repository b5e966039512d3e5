package control

import (
	"fmt"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/tables"
)

// The interfaces of an external Node. As for Pods, an interface gets its entries after the policies
// of its ExternalEntity. Without these entries, no IP packet passes.

// links returns the ports of this Node's ExternalEntities, with their cards.
func (v *view) links() map[cluster.Key]tables.ExternalLink {
	nc := v.NodeConfig(v.node)
	if !nc.External() {
		return nil
	}
	all := map[cluster.Key]tables.ExternalLink{}
	for _, p := range nc.Ports {
		if p.Role != cluster.RoleHost {
			continue
		}
		uplink, _ := portNamed(nc, p.Uplink)
		all[cluster.Key{Kind: cluster.KindExternalEntity, Namespace: p.Entity.Namespace, Name: p.Entity.Name}] = tables.ExternalLink{
			Uplink: uplink, Host: tables.Port{Name: p.Name, No: p.OFPort, MAC: p.MAC},
		}
	}
	return all
}

// entityHere is an ExternalEntity of this Node, or the reason why it has no entries.
func (v *view) entityHere(k cluster.Key) (e *cluster.ExternalEntity, lacks string) {
	e = v.ExternalEntities[k]
	switch {
	case e == nil:
		return nil, "there is no such object"
	case e.ExternalNode != v.node:
		return e, fmt.Sprintf("its externalNode is %q, and a port of this Node has it", e.ExternalNode)
	case len(e.IPs) == 0:
		return e, "it has no address yet"
	}
	return e, manifest.RefuseIPv6(e.IPs)
}

// entityBuilder makes the entries of this Node's ExternalEntities.
type entityBuilder struct{}

func (entityBuilder) settled(ledger.Part, *ledger.Desired) {}

func (b entityBuilder) build(c *change, w *wants) {
	links := c.now.links()
	keys := affected(c, cluster.KindExternalEntity, c.now.ExternalEntities)
	if c.all || c.touches(cluster.KindNodeConfig) {
		keys = append(keys, sortedKeys(links)...)
		if c.was != nil {
			keys = append(keys, sortedKeys(c.was.links())...)
		}
	}
	for _, k := range c.now.sortByPlace(keys) {
		link, here := links[k]
		if !here {
			w.want(ledger.Part{Object: k}, nil)
			if c.now.ExternalEntities[k] != nil {
				w.fine(k)
			}
			continue
		}
		b.link(c.now, k, link, w)
	}
	b.missing(c.now, links, w)
}

// missing adds the ExternalEntities that do not exist to the state of the NodeConfig.
func (entityBuilder) missing(v *view, links map[cluster.Key]tables.ExternalLink, w *wants) {
	if len(links) == 0 {
		return
	}
	config := nodeBuilder{}.config(v).Object
	w.fine(config)
	for _, k := range sortedKeys(links) {
		if v.ExternalEntities[k] == nil {
			w.hold(config, "%s: there is no %s; until it comes, nothing passes there", links[k].Host.Name, k)
		}
	}
}

// link makes the entries of one interface.
func (entityBuilder) link(v *view, k cluster.Key, link tables.ExternalLink, w *wants) {
	part := ledger.Part{Object: k}
	e, lacks := v.entityHere(k)
	if lacks != "" {
		w.want(part, nil)
		if e != nil {
			w.hold(k, "%s; until then, nothing passes at %s", lacks, link.Host.Name)
		}
		return
	}
	d := &ledger.Desired{Owns: e.IPs}
	d.AddEntries(ledger.Origin{Object: k}, v.pipeline.ExternalLink(link)...)
	w.fine(k)
	w.want(part, d)
}

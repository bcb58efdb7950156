"""TIP 3: location-aware services that collaborate without knowing each other (ADC 2009).

events        what services and brokers say             bodies     the type-specific part, canonical and safe
envelope      an event as a SOAP message                cache      requests and replies, kept by a broker
rules         advertisements, conditions, rules         observer   who is subscribed to what
descriptions  what a service says about itself          host       a service as a pure step
state         all that a broker knows                   broker     a broker as a pure step
inputs        what steps take in, and want done         recent     events seen of late
messages      the table of messages                     recording  inputs kept, and replayed
simulated     the driver with simulated time            tcp        the driver over TCP
registry      what a re-start uses again                wrapper    broker and services as processes
services      location, information, display, ...       verify     the steps, over all interleavings
maps          map A and map B, their server             routes     a route planner for map B
indexes       publishers and subscribers, as a table
availability  where services are to be had              cloaking   regions in place of positions
promela       the same steps, for SPIN                  verified   the worlds that are verified
transitions   the table that they have to reach         exchange   registries, told to other brokers
walk          a user among providers                    museum     the walk of sections 5 and 7
day           a tourist's day over a city
"""

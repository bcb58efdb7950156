"""Federation: many brokers, one service (Kiani, Knappmeyer, Baker, Moltchanov: A Federated Broker Architecture, 2010).

attributes   constraints, subscriptions σ, notifications ν (IV.B)
tables       routing tables T_B (IV.C), and the paper's slips
messages     pub, sub, unsub, notify, forward, tableUpdate and the rest
covering     fewer subscriptions on the way
interests    routing filters: a stateless superset of our own filters
state        a broker as a value
brokers      what a broker does with a message: a pure function
reports      which neighbour hears of which client's state
homes        where M is decided, and pair history lives
overlay      the network of brokers
"""

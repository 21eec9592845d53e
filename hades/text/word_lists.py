"""Word lists the extraction rules lean on: closed classes of English and cues to what kind of thing a name is."""

from __future__ import annotations

from schemas.nodes import NameType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never a name on their own, however they are written; stripped from the ends of a capitalised span.
FUNCTION_WORDS = _words("""
a about above across after again against all almost alone along already also although always am among an and
another any anyone anything are around as at away back be became because become been before began behind
being below beneath beside besides best better between beyond both but by can cannot could currently despite
did do does doing done down due during each either else enough especially etc even ever every everyone
everything except few finally first firstly following for former formerly from further furthermore given had
has have having he hence her here hers herself him himself his how however i if in indeed initially instead
into is it its itself just last lastly later latter least less let like likewise little located made mainly
many may maybe me meanwhile might mine more moreover most mostly much must my myself near nearly neither
never nevertheless next no nobody none nonetheless nor not nothing notably now nowhere of off often on once
one only onto or originally other others otherwise our ours ourselves out over overall own part per perhaps
previously rather recently regarding respectively same second secondly see seen several shall she should
similarly simply since so some someone something somebody anybody everybody somewhere anywhere everywhere
sometimes soon still subsequently such than that the their theirs them themselves then there thereafter
thereby therefore these they third this those though three through throughout thus to today together too
toward towards two typically under unless unlike until up upon us use used using usually various very via
was we well were what whatever when whenever where whereas whereby wherein whether which while who whoever
whom whose why will with within without would yes yet you your yours yourself doesn don isn wasn weren won t
s d ll m re ve didn couldn shouldn hadn hasn haven
""")
# Lower-case words that may stand inside a name. The weak ones also join two names, so their parts are kept as well.
CONNECTORS = _words("""
of the de la le los las del della di da dos das do du des van von der den ter ten zu zur al el bin ibn ben
bint y e i
""")
WEAK_CONNECTORS = _words("and for s n")
# A full stop after these ends no sentence.
ABBREVIATIONS = _words("""
mr mrs ms dr prof st sr jr fr gen col lt sgt capt maj cpt hon rev gov sen rep pres no vol vs ca cf eg ie al
fig eq sec ed eds inc ltd co corp bros dept univ mt ft approx jan feb mar apr jun jul aug sep sept oct nov
dec
""")
CALENDAR = _words("""
january february march april may june july august september october november december monday tuesday
wednesday thursday friday saturday sunday spring summer autumn winter bc ad ce bce am pm
""")
# Before a name, part of a title rather than of the name: "King Lothair II" is Lothair II.
HONORIFICS = _words("""
mr mrs ms dr prof professor sir dame lord lady king queen prince princess emperor empress pope saint st
bishop archbishop cardinal president senator governor general colonel captain major lieutenant sergeant
admiral judge justice count countess duke duchess baron baroness earl sheikh sultan shah tsar father brother
sister director actor actress author singer composer writer poet painter
""")
# Words that break a lower-case term: verbs and adjectives that any text uses, and what papers say of themselves.
TERM_BREAKERS = _words("""
able achieve achieved achieves according account added addition additional address addressed addresses aim
aims allow allowed allowing allows analyze analyzed appear applied applies apply appropriate approximately
argue arise aspect aspects assume assumed available aware based basic become belong big born build called
came capable capture case cases cause certain changed changes characterize chosen clear clearly close come
comes common commonly compare compared comparing comparison complete completely compute computed consider
considered considering considers consist consisting consists contain containing contains contribute
contribution contributions corresponding crucial current deal define defined demonstrate demonstrated
demonstrates depend depending derive derived describe described describes designed detail detailed details
determine develop developed developing died differ difference differences different difficult directly
discuss discussed discusses easily easy effect effective effectively efficient efficiently employ enable
enables entire essential establish established evaluate evaluated every exact examine example examples exist
existing exists expect expected experiment experiments explain explore explored extend extended extension
extensive extract extracted fact far find finding findings finds focus follow followed follows found full
fully fundamental gave generally generate generated get give gives giving go goal good great greatly high
higher highest highly hold idea identify illustrate impact implement implemented important improve improved
improvement improvements improves improving include included includes including increase increased increases
increasing interest interesting introduce introduced introduces introducing investigate investigated involve
involved involves issue issues keep key kind kinds know known lack large larger largest latest lead leading
leads left limited long look low lower main major make makes making manner mean means meet method methods
million modern moreover need needed needs new novel number numbers numerous obtain obtained obtaining
obtains occur offer often old outperform outperforms paper papers particular particularly people perform
performed performs place played plays popular possible present presented presenting presents prior problem
problems produce produced produces promising proof propose proposed proposes proposing prove proved proven
provide provided provides providing published purpose put quite ranging reach really reason recent reduce
reduced reduces reducing refer referred related relative relatively released relevant rely report reported
require required requires respect result resulted resulting results role said say see seem serve served
short show showed showing shown shows significant significantly similar simple simultaneously situation
small smaller solve solved solving sometimes sort special specific specifically start started stated steps
strong study studied studies studying substantial substantially successful successfully suggest suggests
suitable take taken takes taking technique techniques tend terms tested thing things think thought times top
total traditional true try turn type types typical understand unknown useful usefulness uses utilize
utilized variety want way ways whole wide widely work worked works year years approach approaches
""")
METHOD_CUES = _words("""
algorithm algorithms method methods network networks model models machine machines regression classifier
classifiers transform estimator optimization optimizer inference sampling clustering factorization
decomposition learning search propagation descent attention embedding embeddings kernel kernels filter
filters autoencoder autoencoders parser protocol procedure
""")
GIVEN_NAMES = _words("""
john james robert michael william david richard joseph thomas charles christopher daniel matthew anthony
mark donald steven paul andrew joshua kenneth kevin brian george edward ronald timothy jason jeffrey ryan
jacob gary nicholas eric jonathan stephen larry justin scott brandon benjamin samuel gregory frank alexander
raymond patrick jack dennis jerry tyler aaron henry jose adam douglas nathan peter walter kyle harold carl
arthur roger keith albert ralph louis philip bobby johnny bruce martin fred alan victor francis mary
patricia jennifer linda elizabeth barbara susan jessica sarah karen nancy lisa margaret betty sandra ashley
dorothy kimberly emily donna michelle carol amanda melissa deborah stephanie rebecca laura sharon cynthia
kathleen amy angela shirley anna ruth brenda pamela nicole katherine virginia catherine christine janet
debra rachel carolyn emma maria heather diane julie joyce victoria kelly christina joan evelyn judith alice
julia marie ann anne jean hans karl friedrich johann wilhelm otto heinrich pierre jacques francois marcel
henri giovanni giuseppe antonio marco luigi carlos juan luis miguel pedro manuel fernando mohammed muhammad
mohamed ahmed ali hassan abdul ibrahim yusuf ivan vladimir sergei dmitri nikolai boris alexei leonid raj
ravi kumar sanjay amit anil suresh tom tim jim joe bob bill dave mike dan sam ben alex max leo oscar hugo
felix simon ian neil colin graham derek trevor stuart harry geoffrey guido armin wes ada grace linus dennis
brendan bjarne yann yoshua andrej claude edsger niklaus tim guillermo kent ward rich sebastian jan lars sven
erik olaf stefan andreas matthias jurgen klaus wolfgang ingrid helga sofia elena olga natasha tatiana yuri
igor pavel tomas milan zoltan laszlo istvan kenji hiroshi takashi yuki akira wei ming jin chen priya anita
fatima aisha omar khalid amir reza chiara paolo lucia isabel carmen pablo diego rafael ana beatriz joao
chloe sophie camille julien nicolas emilie zoe hannah olivia charlotte lucy eleanor florence edith
jonas nora hiro sara mia noah liam ethan lukas felix anton emil axel nils astrid freya greta clara ida elsa
hanna katrin ulrich dieter gunther helmut bernd petra sabine claudia monika martina jana eva marek piotr
krzysztof tomasz agnieszka katarzyna magdalena jiri petr lenka zuzana andrei mihai ioana radu dragan zoran
goran ivana marija nikola stavros giorgos eleni yannis mehmet mustafa ayse emre deniz leila nadia samira
youssef karim tariq hamid farid ines rui joana tiago mateus lucas gabriel fernanda camila valentina mariana
alejandro javier andres ricardo eduardo roberto francesco alessandro matteo giulia elisa federico lorenzo
haruto kenta naoko sakura keiko masato satoshi hye min jun seo ji xiao yan hui fang lei hong rajesh vijay
deepak arun sunil lakshmi meera divya neha kavita rohan arjun wanjiru kwame kofi amara ngozi chidi themba
""")
# Inside a name, between capitalised words: the name is a person's.
PERSON_PARTICLES = _words("van von ibn bint")
# Countries and the largest cities, folded.
PLACES = frozenset(
    """
afghanistan, albania, algeria, angola, argentina, armenia, australia, austria, azerbaijan, bangladesh, belarus,
belgium, bolivia, brazil, bulgaria, cambodia, cameroon, canada, chile, china, colombia, croatia, cuba, cyprus,
denmark, ecuador, egypt, estonia, ethiopia, finland, france, germany, ghana, greece, guatemala, haiti, hungary,
iceland, india, indonesia, iran, iraq, ireland, israel, italy, jamaica, japan, kazakhstan, kenya, kuwait, latvia,
lebanon, libya, lithuania, luxembourg, malaysia, mali, malta, mexico, mongolia, morocco, mozambique, myanmar,
namibia, nepal, netherlands, new zealand, nicaragua, nigeria, north korea, norway, pakistan, panama, paraguay, peru,
philippines, poland, portugal, qatar, romania, russia, rwanda, saudi arabia, senegal, serbia, singapore, slovakia,
slovenia, somalia, south africa, south korea, spain, sri lanka, sudan, sweden, switzerland, syria, taiwan, tanzania,
thailand, tunisia, turkey, uganda, ukraine, united kingdom, united states, uruguay, venezuela, vietnam, yemen,
zambia, zimbabwe, england, scotland, wales, europe, asia, africa, north america, south america, antarctica,
amsterdam, athens, baghdad, bangkok, barcelona, beijing, berlin, bogota, boston, brussels, bucharest, budapest,
buenos aires, cairo, cape town, chicago, copenhagen, delhi, dubai, dublin, edinburgh, geneva, hamburg, helsinki,
hong kong, istanbul, jakarta, karachi, kyiv, lagos, lima, lisbon, london, los angeles, madrid, manila, melbourne,
mexico city, milan, montreal, moscow, mumbai, munich, nairobi, new york, new york city, oslo, osaka, paris,
philadelphia, pittsburgh, prague, rome, san francisco, santiago, sao paulo, seattle, seoul, shanghai, stockholm,
sydney, tehran, tokyo, toronto, vancouver, vienna, warsaw, zurich, california, texas, florida
""".replace("\n", " ")
    .strip()
    .split(", ")
)
# The last word, or any word, of a name that says what kind of thing it is.
NAME_CUES: dict[NameType, frozenset[str]] = {
    NameType.ORG: _words("""
university college school institute academy company corporation inc ltd corp group records museum library
hospital party club fc association federation league union council committee commission ministry department
agency bureau foundation society church orchestra band airlines railway bank press studios pictures
entertainment productions games network channel radio army navy force corps regiment team united
organization organisation laboratory laboratories center centre labs gmbh ag llc plc systems technologies
motors industries holdings ventures authority parliament senate
"""),
    NameType.GPE: _words("""
    county city town village district province region state republic kingdom empire island islands river
    lake mount mountain mountains valley bay sea ocean desert peninsula borough township parish municipality
    prefecture street road avenue park airport station bridge castle palace cathedral abbey square coast
    states territory canton beach forest duchy
    """),
    NameType.EVENT: _words("""
    war battle siege championship championships cup olympics games festival election elections conference
    revolution rebellion massacre treaty congress tournament grand prix expedition earthquake hurricane
    crisis race season ceremony awards award prize flood
    """),
    NameType.PRODUCT: _words("""
    game software engine browser compiler framework toolkit
    """),
    NameType.WORK: _words("""
    film album song novel series show magazine newspaper journal symphony opera soundtrack ep
    """),
}
# The first word of the name of a place: Lake Naivasha, Mount Elbrus.
PLACE_HEADS = _words("lake mount cape port fort isle lago rio monte")
# Head nouns of "X is a ...": what the first sentence of a page calls its subject.
IS_A_CUES: dict[NameType, frozenset[str]] = {
    NameType.PERSON: _words("""
actor actress director producer writer author novelist poet singer songwriter musician composer rapper
drummer guitarist pianist player footballer cricketer politician lawyer judge scientist physicist chemist
mathematician engineer philosopher historian professor king queen prince princess emperor duke bishop
archbishop pope saint nobleman noble soldier officer general admiral painter sculptor architect artist
photographer journalist businessman businesswoman entrepreneur model dancer coach manager wrestler boxer
swimmer cyclist athlete screenwriter filmmaker playwright comedian son daughter wife member ruler monk
missionary explorer activist economist psychologist theologian priest minister skater golfer driver racer
programmer developer researcher creator designer inventor astronomer biologist founder teacher surgeon
"""),
    NameType.ORG: _words("""
    company corporation university college school institute organization organisation band group team club
    party association agency label studio publisher newspaper network station airline bank museum hospital
    church orchestra league society manufacturer franchise charity brand startup firm consortium foundation
    """),
    NameType.GPE: _words("""
    city town village county district province region state country municipality commune township borough
    suburb island river lake mountain peninsula settlement census-designated place community neighborhood
    neighbourhood capital parish territory hamlet
    """),
    NameType.EVENT: _words("""
    war battle siege election tournament championship festival conference competition event revolution
    season
    """),
    NameType.PRODUCT: _words("""
    game software program language library framework aircraft car ship locomotive tool package database
    compiler toolkit platform app application plugin browser engine server client shell editor
    """),
    NameType.WORK: _words("""
    film movie album song single novel book series show musical play opera magazine soundtrack documentary
    comedy drama thriller poem painting sculpture symphony ballad novella memoir essay play trilogy
    """),
}
# Written with a capital only because they open a sentence, or are values of code.
OPENERS = _words("""
additionally afterwards alternatively assume assuming basically congratulations consequently consider conversely
eventually fortunately generally hopefully ideally imagine importantly incidentally interestingly internally normally
occasionally optionally ordinarily please possibly prefer presumably relatedly remember roughly sadly simply
specifically suppose surprisingly thankfully traditionally ultimately unfortunately warning note tip caution true false
null tbd todo
""")
NEUTRAL_TITLES = _words("""
introduction overview readme index contents abstract summary conclusion references appendix notes main
untitled
""")
